package throttle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// refusing is a Dispatcher that never takes anything.
type refusing struct {
	mu    sync.Mutex
	calls []time.Time
}

func (r *refusing) Dispatch(context.Context, []throttle.Parcel) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, time.Now())
	return errors.New("no way through")
}

func (r *refusing) Alive(context.Context, string, string) (bool, error) { return false, nil }

func (r *refusing) asked() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// Jobs that are given back wake the scheduler that gave them back. It must not try
// again and again at full speed for that.
func TestRefusedJobsAreTriedLessAndLessOften(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	var r refusing
	runScheduler(t, q, &r, throttle.SchedulerConfig{})
	_, err := q.EnqueueMany(t.Context(), numbered("k", 5))
	require.NoError(t, err)
	eventually(t, func() bool { return len(r.asked()) >= 6 }, "the jobs are not tried again")
	calls := r.asked()
	require.Greater(t, calls[5].Sub(calls[0]), 300*time.Millisecond)
}

// One shard's data is broken. Its release fails again and again; the keys of the other
// shards keep their pace.
func TestBrokenShardDoesNotHoldUpTheOthers(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	unlimited(t, q)
	key := "k"
	broken := (throttle.ShardOf(q, key) + 1) % 16
	require.NoError(t, server.Client().Set(t.Context(), script.DueKey(broken), "not a sorted set", 0).Err())
	var c courier
	runScheduler(t, q, &c, throttle.SchedulerConfig{})
	for round := range 50 {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: key, Type: "t"})
		require.NoError(t, err)
		began := time.Now()
		eventually(t, func() bool { return len(c.jobs()) == round+1 }, "the job is not released")
		require.Less(t, time.Since(began), 2*time.Second)
	}
}
