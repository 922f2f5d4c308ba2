package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

// A job that an operator has leave now does so past limit and pause, and past the
// worker's own measure; the others keep to the limit, which it was charged for.
func TestReleaseNowReachesAWorker(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("2/s", 1, "k")
	s.schedule()
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.enqueue(jobs("k", 6)...)
	c.wait("k", 1)
	asked := time.Now()
	for _, id := range []string{"5", "6"} {
		require.NoError(t, s.queue.ReleaseNow(t.Context(), "k", id))
	}
	c.wait("k", 3)
	for _, j := range c.of("k")[1:3] {
		require.Contains(t, []string{"5", "6"}, j.ID)
		require.Less(t, j.began.Sub(asked), 400*time.Millisecond)
	}
	s.empty("k")
	all := c.of("k")
	require.Equal(t, []string{"2", "3", "4"}, idsOf(all[3:]))
	require.GreaterOrEqual(t, all[3].Departed.Sub(all[0].Departed), 1490*time.Millisecond, "three were charged before it")

	require.NoError(t, s.queue.Pause(t.Context(), "k"))
	s.enqueue(throttle.Job{Key: "k", ID: "paused", Type: "test"})
	require.NoError(t, s.queue.ReleaseNow(t.Context(), "k", "paused"))
	require.Equal(t, "paused", c.wait("k", 7)[6].ID)
}

// The context of an attempt ends at the job's deadline, and the job with it.
func TestAttemptsEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 10, "k")
	s.schedule()
	c := s.calls()
	s.work(worker.Config{Retry: worker.RetryPolicy{Base: time.Hour, Cap: time.Hour, MaxAttempts: 9}}, c.handler(func(ctx context.Context, _ call) error {
		<-ctx.Done()
		return ctx.Err()
	}))
	end := time.Now().Add(700 * time.Millisecond)
	s.enqueue(throttle.Job{Key: "k", ID: "1", Type: "test", Deadline: end, Timeout: time.Minute})
	s.empty("k")
	require.WithinDuration(t, end, time.Now(), 5*time.Second)
	info := s.state("k", "1")
	require.Equal(t, throttle.Dead, info.State)
	require.Equal(t, "its deadline is before the next attempt: context deadline exceeded", info.Reason)
}

// Why each attempt failed can be looked up while the job waits for the next one.
func TestErrorsOfAttemptsCanBeLookedUp(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 10, "k")
	s.schedule()
	c := s.calls()
	s.work(worker.Config{Retry: worker.RetryPolicy{Base: time.Millisecond, Cap: time.Millisecond, MaxAttempts: 4}}, c.handler(func(_ context.Context, j call) error {
		return []error{errors.New("no route\nto host"), errors.New("reset by peer"), errors.New("é"), nil}[j.Attempt-1]
	}))
	require.NoError(t, s.queue.SetPolicy(t.Context(), throttle.Policy{Key: "k", Limit: s.limits["k"], KeepDone: time.Hour}))
	before := time.Now()
	s.enqueue(jobs("k", 1)...)
	s.empty("k")
	info := s.state("k", "1")
	require.Equal(t, throttle.Done, info.State)
	require.Len(t, info.History, 4)
	require.Equal(t, "no route to host", info.History[0].Error)
	require.Equal(t, "é", info.History[2].Error)
	require.Equal(t, throttle.Done, info.History[3].Outcome)
	for i, a := range info.History {
		require.Equal(t, i+1, a.Number)
		require.WithinRange(t, a.Departed, before.Add(-time.Second), a.Ended.Add(time.Millisecond))
	}
}

// A job that is cancelled while it runs has no other attempt; one that waits has none.
func TestCancelledJobsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("20/s", 1, "k")
	s.schedule()
	c := s.calls()
	cancelled := make(chan struct{})
	s.work(worker.Config{Retry: soon}, c.handler(func(context.Context, call) error {
		<-cancelled
		return errRefused
	}))
	s.enqueue(throttle.Job{Key: "k", ID: "runs", Type: "test"}, throttle.Job{Key: "k", ID: "delayed", Type: "test", NotBefore: time.Now().Add(time.Hour)})
	c.wait("k", 1)
	for id, want := range map[string]string{"runs": throttle.Running, "delayed": throttle.Delayed} {
		state, err := s.queue.Cancel(t.Context(), "k", id)
		require.NoError(t, err)
		require.Equal(t, want, state)
	}
	close(cancelled)
	s.empty("k")
	require.Equal(t, []string{"runs"}, idsOf(c.of("k")))
	require.Empty(t, s.dead("k"))
	_, err := s.queue.Job(t.Context(), "k", "runs")
	require.ErrorIs(t, err, throttle.ErrNoJob)
}

// The jobs of an ordered key run one after the other, also over several workers, and a
// failing one holds the line.
func TestOrderedKeysRunInOrder(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("500/s", 50, "k")
	require.NoError(t, s.queue.SetPolicy(t.Context(), throttle.Policy{Key: "k", Limit: s.limits["k"], Ordered: true}))
	c := s.calls()
	for range 3 {
		s.work(worker.Config{Retry: soon}, c.handler(func(_ context.Context, j call) error {
			if j.ID == "7" && j.Attempt < 3 {
				return errRefused
			}
			return nil
		}))
	}
	s.schedule()
	s.schedule()
	s.enqueue(jobs("k", 30)...)
	s.empty("k")
	want := append(append(ids(7), "7", "7"), ids(30)[7:]...)
	require.Equal(t, want, idsOf(c.of("k")))
}
