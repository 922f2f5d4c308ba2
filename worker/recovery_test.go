package worker_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// stored finds the only name in Redis that matches a pattern.
func (s *system) stored(pattern string) string {
	s.tb.Helper()
	var names []string
	s.eventually(func() bool {
		names = s.redis.Client().Keys(context.Background(), pattern).Val()
		return len(names) > 0
	}, "nothing is stored under %s", pattern)
	require.Len(s.tb, names, 1)
	return names[0]
}

func TestDamagedJobDiesAlone(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("200/s", 1, "k")
	s.enqueue(jobs("k", 10)...)
	require.NoError(t, s.client.HSet(t.Context(), s.stored("weir:{*}:j:k"), "3", "}{").Err())
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	c.wait("k", 9)
	s.empty("k")
	require.Equal(t, slices.Delete(ids(10), 2, 3), idsOf(c.of("k")))
	letters := s.dead("k")
	require.Len(t, letters, 1)
	require.Equal(t, "3", letters[0].ID)
	require.Equal(t, "the stored job is damaged", letters[0].Reason)
	n, err := s.queue.Purge(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, n)

	s.enqueue(jobs("k", 10)...) // the key goes on, and the id can be used again
	c.wait("k", 19)
	s.empty("k")
	require.Len(t, c.of("k"), 19)
}

// endLease makes a job in flight look as if its worker was not heard of any more.
func (s *system) endLease(key, id string) {
	_ = s.redis.Client().ZAddXX(context.Background(), s.stored("weir:{*}:lease"), redis.Z{Member: id + " " + key}).Err()
}

// A worker that was not heard of for longer than a lease is told to stop when it is
// back: the job is somebody else's by then.
func TestJobThatWasTakenBackIsCancelled(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("1000/s", 10, "k")
	c := s.calls()
	ends := make(chan error, 2)
	s.work(worker.Config{Lease: 3 * time.Second, Timeout: time.Hour}, c.handler(func(ctx context.Context, job call) error {
		if len(c.of("k")) > 1 {
			return nil // the second run, whichever server it is on
		}
		<-ctx.Done()
		ends <- context.Cause(ctx)
		return ctx.Err()
	}))
	s.scheduleWith(throttle.SchedulerConfig{Poll: 50 * time.Millisecond}, nil) // a look at a shard tells of its leases
	s.enqueue(jobs("k", 1)...)
	c.wait("k", 1)
	s.eventually(func() bool {
		job, err := s.queue.Job(context.Background(), "k", "1")
		if err == nil && job.State == throttle.Running && len(c.of("k")) == 1 {
			s.endLease("k", "1") // again, if the worker has just renewed it
		}
		return len(c.of("k")) > 1
	}, "nobody takes the job back")
	select {
	case cause := <-ends:
		require.ErrorContains(t, cause, "given to another")
	case <-time.After(patience):
		require.Fail(t, "the first run goes on")
	}
	s.empty("k")
	require.Len(t, c.of("k"), 2)
	require.Equal(t, 2, c.of("k")[1].Attempt)
	require.Empty(t, s.dead("k"))
}

// Everything that was stored is there after a restart of Redis: it goes on where it
// was, at the same pace.
func TestRedisRestartLosesNothing(t *testing.T) {
	t.Parallel()
	const n = 80
	s := newSystem(t, "--appendonly", "yes", "--appendfsync", "always")
	s.limit("40/s", 1, "k")
	s.enqueue(jobs("k", n)...)
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	c.wait("k", 20)
	require.NoError(t, s.redis.Restart())
	require.Less(t, len(c.of("k")), n)
	require.Eventually(t, func() bool { return len(c.of("k")) >= n }, 3*patience, 10*time.Millisecond) // asynq's own lease, if a dequeue was cut
	s.empty("k")
	require.NoError(t, s.report(c, "k", ids(n)).Check(throttletest.Bounds{MaxExcess: 1}))
	require.Empty(t, s.dead("k"))
}

// twice hands every parcel over a second time, as asynq does when it has lost sight
// of one.
type twice struct{ *worker.Dispatcher }

func (d twice) Dispatch(ctx context.Context, parcels []throttle.Parcel) error {
	again := slices.Clone(parcels)
	for i := range again {
		again[i].ID += ".again"
	}
	return d.Dispatcher.Dispatch(ctx, append(parcels, again...))
}

func TestParcelThatIsDeliveredAgainFindsItsJobsGone(t *testing.T) {
	for name, concurrency := range map[string]int{"jobs run": 100, "jobs wait in line": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t)
			s.limit("500/s", 50, "k", "l")
			s.enqueue(append(jobs("k", 150), jobs("l", 150)...)...)
			c := s.calls()
			for range 2 {
				s.work(worker.Config{Concurrency: concurrency}, c.handler(nil))
			}
			s.scheduleWith(throttle.SchedulerConfig{}, twice{worker.NewDispatcher(s.client)})
			c.wait("", 300)
			s.empty("k", "l")
			const late = 500 / 20 // what leaves in half a lead: one worker may be that late with its part of a burst
			for _, key := range []string{"k", "l"} {
				require.NoError(t, s.report(c, key, ids(150)).Check(throttletest.Bounds{MaxExcess: late}))
			}
		})
	}
}

// Without workers no pile of tasks grows in asynq, whatever time passes and however
// often leases end; and when workers come there is no burst above the limit.
func TestWithoutWorkersNothingPilesUp(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 5, "k")
	s.enqueue(jobs("k", 150)...)
	s.scheduleWith(throttle.SchedulerConfig{Lease: time.Second, Poll: 50 * time.Millisecond}, nil)
	const most = 5 + 100/10 + 1 // burst, rate × lead, and the one whose slot is a lead away
	pending := func() int64 {
		return s.redis.Client().LLen(context.Background(), "asynq:{"+throttle.DefaultPool+"}:pending").Val()
	}
	s.eventually(func() bool { return pending() > 0 }, "nothing is handed over")
	for range 3 { // a lease each: twenty looks at sixteen shards
		k, err := s.queue.Key(t.Context(), "k")
		require.NoError(t, err)
		require.LessOrEqual(t, k.InFlight, int64(most))
		require.LessOrEqual(t, pending(), int64(most))
		s.evaluations(20 * 16)
	}

	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	c.wait("k", 150)
	s.empty("k")
	require.NoError(t, s.report(c, "k", ids(150)).Check(throttletest.Bounds{MaxExcess: 1}))
}

// A key that contains what names in Redis are made of is a key like any other.
func TestOddKeysAreKeys(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	keys := []string{"plain", "a{b}c", "{x}", "a:b", "a b", "é", " ", "*", "\x00\r\n\t", strings.Repeat("k", throttle.MaxKeyBytes)}
	var all []throttle.Job
	for _, key := range keys {
		all = append(all, jobs(key, 2)...)
	}
	for i := range all {
		all[i].Policy = &throttle.Policy{Limit: throttle.Limit{Rate: 50, Period: time.Second, Burst: 1}}
	}
	s.enqueue(all...)
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	c.wait("", 2*len(keys))
	s.empty(keys...)
	for _, key := range keys {
		require.Equal(t, []string{"1", "2"}, idsOf(c.of(key)), "%q", key)
	}
}
