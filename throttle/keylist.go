package throttle

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/weirq/weir/throttle/internal/script"
)

// A KeyPage is part of the keys that have jobs.
type KeyPage struct {
	Keys []KeyInfo
	Next string // cursor of the next page; empty if this is the last
}

// keyPosition is where a page of keys ended.
type keyPosition struct {
	Shard int    `json:"s"`
	Scan  uint64 `json:"c"`
}

// Keys lists keys that have jobs waiting, delayed or in flight, in no order. pattern is
// a key with at most one *, which stands for any text; empty means AnyKey. A page has
// about as many keys as asked for, and may have none though others follow. A key that has jobs all
// along is listed, at times twice.
func (q *Queue) Keys(ctx context.Context, pattern string, page Page) (KeyPage, error) {
	if pattern == "" {
		pattern = AnyKey
	}
	if err := ValidatePolicyName(pattern); err != nil {
		return KeyPage{}, err
	}
	page, err := page.withDefaults()
	if err != nil {
		return KeyPage{}, err
	}
	var at keyPosition
	if err := decodeCursor(page.Cursor, &at); err != nil {
		return KeyPage{}, err
	}
	if at.Shard < 0 || at.Shard >= q.store.shards {
		return KeyPage{}, invalid("cursor", page.Cursor, "what the page before said is next")
	}
	out, err := q.keys(ctx, pattern, page.Limit, at)
	if err != nil {
		return KeyPage{}, fmt.Errorf("list keys: %w", err)
	}
	return out, nil
}

// scansPerPage bounds what one page costs where few keys match.
const scansPerPage = 100

func (q *Queue) keys(ctx context.Context, pattern string, limit int, at keyPosition) (page KeyPage, err error) {
	for scans := 0; len(page.Keys) < limit && scans < scansPerPage; scans++ {
		pairs, next, err := q.store.client.ZScan(ctx, script.DueKey(at.Shard), at.Scan, glob(pattern), int64(limit)).Result()
		if err != nil {
			return KeyPage{}, err
		}
		infos, err := q.keyInfos(ctx, at.Shard, pairs)
		if err != nil {
			return KeyPage{}, err
		}
		page.Keys = append(page.Keys, infos...)
		if at.Scan = next; next == 0 {
			if at.Shard++; at.Shard == q.store.shards {
				return page, nil
			}
		}
	}
	page.Next = encodeCursor(at)
	return page, nil
}

// keyInfos tells of the keys of a shard's due set, given with their scores.
func (q *Queue) keyInfos(ctx context.Context, shard int, pairs []string) (list []KeyInfo, err error) {
	var keys []string
	var calls []*script.Call
	for i := 0; i < len(pairs); i += 2 {
		if !utf8.ValidString(pairs[i]) {
			continue
		}
		keys = append(keys, pairs[i])
		calls = append(calls, q.store.scripts.Stat(shard, pairs[i]))
	}
	if len(calls) == 0 {
		return nil, nil
	}
	if err := q.store.run(ctx, calls...); err != nil {
		return nil, err
	}
	for i, c := range calls {
		info, err := keyInfo(keys[i], c.Counts())
		if err != nil {
			info.Damaged = err // the others are no worse for it
		}
		if info.Waiting+info.Delayed+info.InFlight > 0 {
			list = append(list, info)
		}
	}
	return list, nil
}
