package throttle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// ErrNoHistory is returned when nothing is kept of a key's departures.
var ErrNoHistory = errors.New("no history: its policy keeps none, see Policy.History, or nothing departed within a day")

// History reads what is kept of a key's departures, those of its children included: as
// many as its policy says or a little more, until a day after the last of them.
func (q *Queue) History(ctx context.Context, key string) (History, error) {
	if err := ValidateKey(key); err != nil {
		return History{}, err
	}
	n, err := q.counts(ctx, key) // which learns where its family is
	var entries []string
	if err == nil {
		entries, err = q.historyEntries(ctx, n.Home, key)
	}
	told := ""
	if err == nil {
		told, err = q.store.client.HGet(ctx, script.BucketKey(n.Home, key), "told").Result()
		if errors.Is(err, redis.Nil) {
			err = nil
		}
	}
	if err == nil && len(entries) == 0 {
		err = ErrNoHistory
	}
	if err != nil {
		return History{}, fmt.Errorf("read the history of key %q: %w", key, err)
	}
	return parseHistory(key, withFirstPolicy(entries, told))
}

const historyPage = 5000

func (q *Queue) historyEntries(ctx context.Context, shard int, key string) (entries []string, err error) {
	from := "-"
	for {
		page, err := q.store.client.XRangeN(ctx, script.HistoryKey(shard, key), from, "+", historyPage).Result()
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			text, _ := e.Values["e"].(string)
			entries = append(entries, text)
			from = "(" + e.ID
		}
		if len(page) < historyPage {
			return entries, nil
		}
	}
}

// withFirstPolicy has a history begin with the policy in force then, if the entry that told
// of it was dropped and another tells of it: the next change, see history.lua, or the
// bucket if there was none. told is the policy that the latest entries are under, empty if
// it is not known.
func withFirstPolicy(entries []string, told string) []string {
	first := told
	var out []string
	for _, e := range entries {
		kind, rest, _ := strings.Cut(e, " ")
		_, policy, _ := strings.Cut(rest, " ")
		changed := slices.ContainsFunc(out, isPolicy)
		switch kind {
		case "o":
			if !changed {
				first = policy
			}
			continue
		case "p":
			if len(out) == 0 {
				return withoutOld(entries) // it is all there
			}
			if !changed && first == told {
				first = "" // the bucket was new then: nothing tells of what was before
			}
		}
		out = append(out, e)
	}
	if first == "" {
		return out
	}
	return append([]string{"p 0 " + first}, out...)
}

func isPolicy(e string) bool { return strings.HasPrefix(e, "p ") }

func withoutOld(entries []string) []string {
	return slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return strings.HasPrefix(e, "o ") })
}
