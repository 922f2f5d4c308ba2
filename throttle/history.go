package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	if err == nil && len(entries) == 0 {
		err = ErrNoHistory
	}
	if err != nil {
		return History{}, fmt.Errorf("read the history of key %q: %w", key, err)
	}
	return parseHistory(key, withFirstPolicy(entries, n.Policy))
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

// withFirstPolicy has a history begin with the policy in force, which the entry that told
// of it may have been dropped: it is repeated when it changes, see history.lua.
func withFirstPolicy(entries []string, now string) []string {
	first := now
	var out []string
	told := false
	for _, e := range entries {
		kind, rest, _ := strings.Cut(e, " ")
		switch {
		case kind == "o":
			if _, policy, ok := strings.Cut(rest, " "); ok && !told {
				first, told = policy, true
			}
			continue
		case kind == "p" && !told:
			if len(out) == 0 {
				return entries // it is all there
			}
			_, first, _ = strings.Cut(rest, " ")
			told = true
		}
		out = append(out, e)
	}
	return append([]string{"p 0 " + first}, out...)
}
