package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

// gate lets handlers wait until the test opens it.
type gate chan struct{}

func (g gate) pass(ctx context.Context) error {
	select {
	case <-g:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestShutdownLetsRunningJobsEnd(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 3, "k")
	c, g := s.calls(), make(gate)
	server := s.work(worker.Config{ShutdownTimeout: patience}, c.handler(func(ctx context.Context, _ call) error { return g.pass(ctx) }))
	s.schedule()
	s.enqueue(jobs("k", 3)...)
	c.wait("k", 3)
	server.cancel()
	select {
	case <-server.ended:
		require.Fail(t, "it did not wait for the jobs")
	case <-time.After(50 * time.Millisecond):
	}
	opened := time.Now()
	close(g)
	server.wait()
	require.Less(t, time.Since(opened), 5*time.Second)
	s.empty("k")
	require.Len(t, c.of("k"), 3)
	require.Empty(t, s.dead("k"))
}

// Jobs that have not departed go back at once, those that run keep the server.
func TestShutdownGivesBackWhatHasNotLeft(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 5, "k")
	c, g := s.calls(), make(gate)
	config := worker.Config{Concurrency: 1, ShutdownTimeout: patience}
	handler := c.handler(func(ctx context.Context, _ call) error { return g.pass(ctx) })
	server, scheduler := s.work(config, handler), s.schedule()
	s.enqueue(jobs("k", 5)...)
	c.wait("k", 1)
	s.eventually(func() bool { return s.state("k", "5").State == throttle.Released }, "the jobs are not on their way")
	scheduler.stop() // or it would release them again
	server.cancel()
	s.eventually(func() bool { return s.state("k", "5").State == throttle.Waiting }, "the jobs do not go back")
	require.Equal(t, throttle.Running, s.state("k", "1").State)
	for _, id := range ids(5)[1:] {
		job := s.state("k", id)
		require.Equal(t, throttle.Waiting, job.State)
		require.Zero(t, job.Attempts)
	}
	close(g)
	server.wait()

	s.work(config, handler)
	s.schedule()
	c.wait("k", 5)
	s.empty("k")
	require.Equal(t, ids(5), idsOf(c.of("k")))
}

// Some end in time, some when they are told to, some never: those that did not end
// go back with no attempt counted, and run again under the next server.
func TestShutdownTakesBackWhatHangs(t *testing.T) {
	t.Parallel()
	const timeout = 300 * time.Millisecond
	s := newSystem(t)
	s.limit("1000/s", 20, "k")
	c, unruly := s.calls(), make(gate)
	t.Cleanup(func() { close(unruly) })
	server := s.work(worker.Config{ShutdownTimeout: timeout}, c.handler(func(ctx context.Context, job call) error {
		switch n := number(t, job.ID); {
		case n <= 15:
			select {
			case <-time.After(timeout / 3):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		case n <= 18:
			<-ctx.Done()
			return context.Cause(ctx)
		default:
			<-unruly
			return errors.New("too late")
		}
	}))
	scheduler := s.schedule()
	s.enqueue(jobs("k", 20)...)
	c.wait("k", 20)
	scheduler.stop()
	stopped := time.Now()
	server.stop()
	require.Less(t, time.Since(stopped), timeout+5*time.Second) // half a second more where nothing else runs

	for _, id := range ids(20)[15:] {
		job := s.state("k", id)
		require.Equal(t, throttle.Waiting, job.State)
		require.Zero(t, job.Attempts)
	}
	again := s.calls()
	s.work(worker.Config{}, again.handler(nil))
	s.schedule()
	again.wait("k", 5)
	s.empty("k")
	seen := idsOf(again.of("k"))
	slices.Sort(seen)
	require.Equal(t, ids(20)[15:], seen)
	for _, j := range again.of("k") {
		require.Equal(t, 1, j.Attempt)
	}
}

func TestShutdownWithoutRedisEnds(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	s := newSystem(t)
	s.limit("1000/s", 5, "k")
	c := s.calls()
	server := s.work(worker.Config{Concurrency: 3, ShutdownTimeout: timeout}, c.handler(func(ctx context.Context, _ call) error {
		<-ctx.Done()
		return ctx.Err()
	}))
	s.schedule()
	s.enqueue(jobs("k", 5)...)
	c.wait("k", 3)
	require.NoError(t, s.redis.Kill())
	stopped := time.Now()
	server.stop()
	require.Less(t, time.Since(stopped), 20*time.Second)
	require.NoError(t, s.redis.Restart())
}

func TestServerRunsOnce(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	server, err := worker.NewServer(s.client, s.queue, worker.Config{})
	require.NoError(t, err)
	require.ErrorContains(t, server.Run(t.Context(), nil), "handler nil is not allowed")
	c := s.calls()
	run := func(ctx context.Context) error { return server.Run(ctx, c.handler(nil)) }
	s.run(run).stop()
	require.ErrorContains(t, run(t.Context()), "runs once")
}

func TestServerRefusesConfigOutOfBounds(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	_, err := worker.NewServer(s.client, s.queue, worker.Config{Concurrency: -1})
	require.ErrorContains(t, err, "concurrency -1 is not allowed")
	_, err = worker.NewServer(s.client, s.queue, worker.Config{Lead: time.Nanosecond})
	require.ErrorContains(t, err, "lead 1ns is not allowed")
}
