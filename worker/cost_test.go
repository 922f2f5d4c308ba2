package worker_test

import (
	"context"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/worker"
)

// The bucket holds what a handler says that its call cost, and nothing for a job that
// was dropped.
func TestBucketHoldsTheTrueCost(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("1/h", 100, "more", "less", "dropped", "dead", "silent")
	for _, key := range []string{"more", "less", "dropped", "dead", "silent"} {
		list := jobs(key, 1)
		list[0].Cost = 10
		s.enqueue(list...)
	}
	c := s.calls()
	s.work(worker.Config{}, c.handler(func(ctx context.Context, job call) error {
		switch job.Key {
		case "more":
			return worker.SetCost(ctx, 40)
		case "less":
			return worker.SetCost(ctx, 3)
		case "dropped":
			return asynq.RevokeTask
		case "dead":
			require.NoError(t, worker.SetCost(ctx, 25))
			return asynq.SkipRetry
		}
		return nil
	}))
	s.schedule()
	for key, level := range map[string]float64{"more": 40, "less": 3, "dropped": 0, "dead": 25, "silent": 10} {
		c.wait(key, 1)
		s.empty(key)
		k, err := s.queue.Key(t.Context(), key)
		require.NoError(t, err)
		require.InDelta(t, level, k.Level, 0.1, key)
	}
}
