package throttle

import (
	"context"
	"fmt"
	"strings"

	"github.com/weirq/weir/throttle/internal/script"
)

// Purge removes the waiting and delayed jobs of an exact key, or of all keys that match
// a pattern, and tells how many there were. Jobs on their way to a worker or running
// are not touched.
func (q *Queue) Purge(ctx context.Context, name string) (removed int64, err error) {
	if err := ValidatePolicyName(name); err != nil {
		return 0, err
	}
	if isPattern(name) {
		removed, err = q.purgeMatching(ctx, name)
	} else {
		removed, err = q.purgeKey(ctx, name)
	}
	if err != nil {
		return removed, fmt.Errorf("purge %q: %w", name, err)
	}
	note := q.store.scripts.Note(q.store.natural(name), q.who, "purge", name, fmt.Sprintf("jobs: %d", removed))
	if err := q.store.run(ctx, note); err != nil {
		return removed, fmt.Errorf("purge %q: %w", name, err)
	}
	return removed, nil
}

const purgePage = 1000 // jobs a call, to keep Redis free for others

// purgeKey empties a key where it belongs and, as its jobs may be on the move, where
// else it may be.
func (q *Queue) purgeKey(ctx context.Context, key string) (total int64, err error) {
	families, err := q.store.families(ctx)
	if err != nil {
		return 0, err
	}
	for shard := range q.store.shards {
		if families || shard == q.store.natural(key) {
			n, err := q.purgeShard(ctx, shard, key)
			if total += n; err != nil {
				return total, err
			}
		}
	}
	return total, nil
}

func (q *Queue) purgeShard(ctx context.Context, shard int, key string) (total int64, err error) {
	for {
		call := q.store.scripts.Purge(shard, key, purgePage)
		if err := q.store.run(ctx, call); err != nil {
			return total, err
		}
		n := call.Count()
		if total += n; n < purgePage {
			return total, nil
		}
	}
}

func (q *Queue) purgeMatching(ctx context.Context, pattern string) (total int64, err error) {
	for shard := range q.store.shards {
		// Every bucket with jobs is in the due set.
		for cursor := uint64(0); ; {
			pairs, next, err := q.store.client.ZScan(ctx, script.DueKey(shard), cursor, glob(pattern), scanPage).Result()
			if err != nil {
				return total, err
			}
			for i := 0; i < len(pairs); i += 2 {
				n, err := q.purgeShard(ctx, shard, pairs[i])
				if total += n; err != nil {
					return total, err
				}
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	return total, nil
}

// glob is a pattern in the syntax of Redis, where more characters are special.
func glob(pattern string) string {
	return strings.NewReplacer(`\`, `\\`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(pattern)
}
