package throttle

import (
	"context"
	"time"
)

// How fast keys move from shard to shard.
const (
	mostMoved   = 128 // jobs a call
	migratePace = 5 * time.Millisecond
)

// migrate moves the jobs of keys that belong elsewhere since their policies changed,
// if nobody in this process is at it already. It ends with the last of them. A call
// that is repeated, here or by another scheduler, finds what came already, also if it
// has left again since.
func (s *Scheduler) migrate(ctx context.Context, shard int) {
	if _, busy := s.migrating.LoadOrStore(shard, true); busy {
		return
	}
	s.returning.Go(func() {
		defer s.migrating.Delete(shard)
		for ctx.Err() == nil {
			more, err := s.migrateSome(ctx, shard)
			if err != nil {
				s.config.Logger.Warn("moving jobs to another shard failed", "shard", shard, "error", err)
				sleep(ctx, backoff(5))
			}
			if err == nil && !more {
				return
			}
			sleep(ctx, migratePace)
		}
	})
}

func (s *Scheduler) migrateSome(ctx context.Context, shard int) (more bool, err error) {
	out := s.store.scripts.Emigrate(shard, mostMoved)
	if err := s.store.run(ctx, out); err != nil {
		return true, err
	}
	m, ok := out.Moving()
	if !ok || len(m.IDs) == 0 {
		return ok, nil
	}
	in := s.store.scripts.Immigrate(m)
	if err := s.store.run(ctx, in); err != nil {
		return true, err
	}
	if in.Count() < int64(len(m.IDs)) {
		// The shard there has not heard of the change yet.
		sleep(ctx, backoff(3))
		return true, nil
	}
	return true, s.store.run(ctx, s.store.scripts.Forget(shard, m))
}
