package throttle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// A Filter chooses jobs. The zero value chooses all.
type Filter struct {
	State  string    // Waiting or Delayed; empty for both
	Type   string    // empty for any
	Prefix string    // of the ID
	Before time.Time // enqueued earlier, by the clock of Redis; zero for any
}

func (f Filter) validate() error {
	if f.State != "" && f.State != Waiting && f.State != Delayed {
		return invalid("state", f.State, "%s or %s, or empty for both", Waiting, Delayed)
	}
	if !f.Before.IsZero() && !storable(f.Before) {
		return invalid("before", f.Before.Format(time.RFC3339), "a time in the years 1970 to 2261")
	}
	return nil
}

func (f Filter) String() string {
	text := ""
	if f.State != "" {
		text += ", state " + f.State
	}
	if f.Type != "" {
		text += ", type " + f.Type
	}
	if f.Prefix != "" {
		text += ", id " + f.Prefix + "*"
	}
	if !f.Before.IsZero() {
		text += ", before " + f.Before.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return strings.TrimPrefix(text, ", ")
}

// Purge removes the waiting and delayed jobs of an exact key, or of all keys that match
// a pattern, and tells how many there were. Jobs on their way to a worker or running
// are not touched.
func (q *Queue) Purge(ctx context.Context, name string) (removed int64, err error) {
	return q.PurgeWhere(ctx, name, Filter{})
}

// PurgeWhere is Purge for the jobs that a filter chooses.
func (q *Queue) PurgeWhere(ctx context.Context, name string, f Filter) (removed int64, err error) {
	if err := ValidatePolicyName(name); err != nil {
		return 0, err
	}
	if err := f.validate(); err != nil {
		return 0, err
	}
	if isPattern(name) {
		removed, err = q.purgeMatching(ctx, name, f)
	} else {
		removed, err = q.purgeKey(ctx, name, f)
	}
	if err != nil {
		return removed, fmt.Errorf("purge %q: %w", name, err)
	}
	text := fmt.Sprintf("jobs: %d", removed)
	if f != (Filter{}) {
		text += " (" + f.String() + ")"
	}
	note := q.store.scripts.Note(q.store.natural(name), q.who, "purge", name, text)
	if err := q.store.run(ctx, note); err != nil {
		return removed, fmt.Errorf("purge %q: %w", name, err)
	}
	return removed, nil
}

const purgePage = 1000 // jobs a call, to keep Redis free for others

// purgeKey empties a key where it belongs and, as its jobs may be on the move, where
// else it may be.
func (q *Queue) purgeKey(ctx context.Context, key string, f Filter) (total int64, err error) {
	homes, err := q.store.homes(ctx, key)
	if err != nil {
		return 0, err
	}
	for _, shard := range homes {
		n, err := q.purgeShard(ctx, shard, key, f)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// homes are the shards in which jobs of a key may be.
func (s *store) homes(ctx context.Context, key string) (list []int, err error) {
	families, err := s.families(ctx)
	if err != nil {
		return nil, err
	}
	if !families {
		return []int{s.natural(key)}, nil
	}
	for shard := range s.shards {
		list = append(list, shard)
	}
	return list, nil
}

func (q *Queue) purgeShard(ctx context.Context, shard int, key string, f Filter) (total int64, err error) {
	p := script.Purging{Key: key, Most: purgePage, Type: f.Type, Prefix: f.Prefix}
	if !f.Before.IsZero() {
		p.Before = f.Before.UnixMicro()
	}
	for state, line := range map[string]string{Waiting: script.ListWaiting, Delayed: script.ListDelayed} {
		if f.State != "" && f.State != state {
			continue
		}
		n, err := q.purgeLine(ctx, shard, p, line)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

func (q *Queue) purgeLine(ctx context.Context, shard int, p script.Purging, line string) (total int64, err error) {
	p.State, p.From = line, 0
	for {
		call := q.store.scripts.Purge(shard, p)
		if err := q.store.run(ctx, call); err != nil {
			return total, err
		}
		looked, removed := call.Purged()
		p.From += looked - removed
		if total += removed; looked < p.Most {
			return total, nil
		}
	}
}

func (q *Queue) purgeMatching(ctx context.Context, pattern string, f Filter) (total int64, err error) {
	for shard := range q.store.shards {
		// Every bucket with jobs is in the due set.
		for cursor := uint64(0); ; {
			pairs, next, err := q.store.client.ZScan(ctx, script.DueKey(shard), cursor, glob(pattern), scanPage).Result()
			if err != nil {
				return total, err
			}
			for i := 0; i < len(pairs); i += 2 {
				n, err := q.purgeShard(ctx, shard, pairs[i], f)
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
