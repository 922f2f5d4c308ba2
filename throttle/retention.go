package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// Retention bounds the dead letters of all keys together. Above it the oldest go, which
// is logged and counted in [Stats]. Where schedulers differ, the tightest holds.
type Retention struct {
	Max int64         // 0 means DefaultMaxDead; 1 to 100 million
	Age time.Duration // 0 means DefaultDeadAge; at least 1m
	// Every is how often that is seen to: so long there may be more. 0 means 10s.
	Every time.Duration
}

// Defaults of a [Retention].
const (
	DefaultMaxDead = 10_000
	DefaultDeadAge = 30 * 24 * time.Hour
)

func (r Retention) withDefaults() Retention {
	setDefault(&r.Max, DefaultMaxDead)
	setDefault(&r.Age, DefaultDeadAge)
	setDefault(&r.Every, 10*time.Second)
	return r
}

func (r Retention) validate() error {
	const most = 100_000_000
	switch {
	case r.Max < 1 || r.Max > most:
		return invalid("dead_letters.max", r.Max, "1 to %d, or 0 for the default of %d", most, DefaultMaxDead)
	case r.Age < time.Minute || r.Age > MaxTTL:
		return invalid("dead_letters.age", r.Age, "1m to %v, or 0 for the default of %v", MaxTTL, DefaultDeadAge)
	case r.Every < 10*time.Millisecond:
		return invalid("dead_letters.every", r.Every, "at least 10ms")
	}
	return nil
}

// retain keeps the dead letters within bounds, and lets done jobs go that were kept for
// long enough.
func (s *Scheduler) retain(ctx context.Context) {
	ticker := time.NewTicker(s.config.DeadLetters.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			evicted, err := s.evict(ctx)
			if evicted > 0 {
				s.config.Logger.Warn("dead letters evicted", "jobs", evicted,
					"max", s.config.DeadLetters.Max, "age", s.config.DeadLetters.Age)
			}
			if err != nil && ctx.Err() == nil {
				s.config.Logger.Warn("evicting dead letters failed", "error", err)
			}
		}
	}
}

// mostEvicted bounds the jobs of one call.
const mostEvicted = 200

// evict removes what is too much or too old, and tells how much of that was dead letters.
func (s *Scheduler) evict(ctx context.Context) (evicted int64, err error) {
	left := make([]int64, s.store.shards)
	oldest := make([]int64, s.store.shards)
	busy := make([]int, s.store.shards) // shards with more to remove
	for i := range busy {
		busy[i] = i
	}
	remove := func(shard int, surplus int64, calls []*script.Call) []*script.Call {
		return append(calls, s.store.scripts.Evict(shard, surplus, s.config.DeadLetters.Age.Microseconds(), mostEvicted))
	}
	for len(busy) > 0 && ctx.Err() == nil {
		var calls []*script.Call
		for _, shard := range busy {
			calls = remove(shard, 0, calls)
		}
		n, again, err := s.evictCalls(ctx, calls, left, oldest)
		if evicted += n; err != nil {
			return evicted, err
		}
		busy = again
	}
	for ctx.Err() == nil {
		surplus, first := -s.config.DeadLetters.Max, 0
		for i, n := range left {
			surplus += n
			if oldest[i] != 0 && (oldest[first] == 0 || oldest[i] < oldest[first]) {
				first = i
			}
		}
		if surplus <= 0 {
			return evicted, nil
		}
		// Of the shard with the oldest, few at a time: others may have older ones by then.
		some := max(1, surplus/int64(4*s.store.shards))
		n, _, err := s.evictCalls(ctx, remove(first, some, nil), left, oldest)
		if evicted += n; err != nil || n == 0 {
			return evicted, err
		}
	}
	return evicted, nil
}

// evictCalls makes calls and takes in what is left; again are the shards that had as
// many to remove as a call may.
func (s *Scheduler) evictCalls(ctx context.Context, calls []*script.Call, left, oldest []int64) (evicted int64, again []int, err error) {
	if err := s.store.run(ctx, calls...); err != nil {
		return 0, nil, fmt.Errorf("evict: %w", err)
	}
	for _, c := range calls {
		var dead, done int64
		left[c.Shard], oldest[c.Shard], dead, done = c.Evicted()
		evicted += dead
		if dead == mostEvicted || done == mostEvicted {
			again = append(again, c.Shard)
		}
	}
	return evicted, again, nil
}
