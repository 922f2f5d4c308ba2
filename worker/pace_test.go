package worker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

func TestJobsLeaveOneByOne(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("20/s", 1, "k")
	s.enqueue(jobs("k", 50)...)
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	list := c.wait("k", 50)
	r := s.report(c, "k", ids(50))
	require.NoError(t, r.Check(throttletest.Bounds{MinRatio: 0.6, MaxExcess: 1, Ordered: true}))
	require.Less(t, r.GapP50, 15*time.Millisecond, "the gaps are even")
	for i := range list[20:] {
		require.Greater(t, list[i+20].Departed.Sub(list[i].Departed), 950*time.Millisecond, "no span of a second holds more than 21")
	}
}

func TestHighRateIsReached(t *testing.T) {
	s := newSystem(t)
	s.limit("500/s", 100, "k")
	s.enqueue(jobs("k", 1500)...)
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	c.wait("k", 1500)
	r := s.report(c, "k", ids(1500))
	require.NoError(t, r.Check(throttletest.Bounds{MinRatio: 0.3, MaxExcess: 1})) // 0.99 where nothing else runs
}

// From scheduler to worker all is pushed: nobody waits for somebody else's poll.
func TestIdleSystemDeliversAtOnce(t *testing.T) {
	t.Parallel()
	const n = 15
	s := newSystem(t)
	s.limit("1000/s", 100, "k")
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	var delays []time.Duration
	for i, job := range jobs("k", n) {
		sent := time.Now()
		s.enqueue(job)
		delays = append(delays, c.wait("k", i+1)[i].began.Sub(sent))
		s.empty("k")
	}
	slices.Sort(delays)
	require.Less(t, delays[n/2], 60*time.Millisecond, "of %v", delays) // 2 ms where nothing else runs
}

func TestThrottledKeyLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("1/m", 1, "slow")
	s.limit("100/s", 10, "fast")
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	s.enqueue(jobs("slow", 10_000)...)
	sent := time.Now()
	s.enqueue(jobs("fast", 10)...)
	list := c.wait("fast", 10)
	require.Less(t, list[9].began.Sub(sent), 2*time.Second) // milliseconds where nothing else runs
	require.Len(t, c.of("slow"), 1)
}

func TestLookingAtAnEmptyQueueSpendsNothing(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("5/m", 5, "k")
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.scheduleWith(throttle.SchedulerConfig{Poll: 10 * time.Millisecond}, nil)
	s.scheduleWith(throttle.SchedulerConfig{Poll: 10 * time.Millisecond}, nil)
	s.evaluations(100 * 16) // looks at sixteen shards
	sent := time.Now()
	s.enqueue(jobs("k", 5)...)
	list := c.wait("k", 5)
	require.Less(t, list[4].began.Sub(sent), 2*time.Second, "the whole burst leaves at once")
	require.NoError(t, s.report(c, "k", ids(5)).Check(throttletest.Bounds{MaxExcess: 1}))
}

// evaluations waits until Redis has run n more scripts.
func (s *system) evaluations(n int) {
	s.tb.Helper()
	count := func() (calls int) {
		info, err := s.redis.Client().InfoMap(context.Background(), "commandstats").Result()
		if err == nil {
			_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_evalsha"], "calls=%d", &calls)
		}
		return calls
	}
	from := count()
	s.eventually(func() bool { return count() >= from+n }, "too few scripts run")
}

// A key with a mountain of slow jobs does not keep others from the workers.
func TestMountainDoesNotStarveOtherKeys(t *testing.T) {
	t.Parallel()
	const others = 200
	s := newSystem(t)
	s.limit("1000/s", 100, "mountain")
	c := s.calls()
	s.work(worker.Config{Concurrency: 20}, c.handler(func(ctx context.Context, job call) error {
		if job.Key != "mountain" {
			return nil
		}
		select { // a slow call
		case <-time.After(50 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	s.schedule()
	s.enqueue(jobs("mountain", 20_000)...)
	c.wait("mountain", 40)
	var rest []throttle.Job
	for i := range others {
		rest = append(rest, jobs(fmt.Sprintf("other %d", i), 1)...)
	}
	sent := time.Now()
	s.enqueue(rest...)
	var last time.Time
	for i := range others {
		last = later(last, c.wait(fmt.Sprintf("other %d", i), 1)[0].began)
	}
	require.Less(t, last.Sub(sent), 4*time.Second) // less than one where nothing else runs
	require.Less(t, len(c.of("mountain")), 10_000)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestSeveralSchedulersAndWorkersKeepOneLimit(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("20/s", 10, "k")
	s.enqueue(jobs("k", 70)...)
	c := s.calls()
	for range 3 {
		client, queue := s.connect()
		process := &system{tb: t, redis: s.redis, client: client, queue: queue}
		process.work(worker.Config{}, c.handler(nil))
		process.schedule()
	}
	c.wait("k", 70)
	s.empty("k")
	require.NoError(t, s.report(c, "k", ids(70)).Check(throttletest.Bounds{MinRatio: 0.6, MaxExcess: 1}))
}
