package throttle_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

const patience = 60 * time.Second

// courier is a Dispatcher that keeps what it is given.
type courier struct {
	mu      sync.Mutex
	parcels []throttle.Parcel
	fail    int // of the next calls
	alive   bool
	asked   int
}

func (c *courier) Dispatch(_ context.Context, parcels []throttle.Parcel) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail > 0 {
		c.fail--
		return errors.New("no way through")
	}
	c.parcels = append(c.parcels, parcels...)
	return nil
}

func (c *courier) Alive(context.Context, string, string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.alive, nil
}

func (c *courier) jobs() (jobs []throttle.Hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.parcels {
		jobs = append(jobs, p.Jobs...)
	}
	return jobs
}

func runScheduler(t *testing.T, q *throttle.Queue, d throttle.Dispatcher, config throttle.SchedulerConfig) (stop func()) {
	t.Helper()
	s, err := throttle.NewScheduler(q, d, config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func unlimited(t *testing.T, q *throttle.Queue) {
	t.Helper()
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{{
		Key: throttle.AnyKey, Limit: throttle.Limit{Rate: 1_000_000, Period: time.Second, Burst: 1_000_000}, MaxInFlight: 100_000,
	}}))
}

func numbered(key string, n int) (jobs []throttle.Job) {
	for i := range n {
		jobs = append(jobs, throttle.Job{Key: key, ID: strconv.Itoa(i), Type: "t"})
	}
	return jobs
}

func eventually(t *testing.T, condition func() bool, message string) {
	t.Helper()
	require.Eventually(t, condition, patience, 2*time.Millisecond, message)
}

func TestSchedulersReleaseEachJobOnce(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	var c courier
	for range 4 {
		runScheduler(t, q, &c, throttle.SchedulerConfig{})
	}
	const keys, each = 20, 100
	for k := range keys {
		_, err := q.EnqueueMany(t.Context(), numbered("key "+strconv.Itoa(k), each))
		require.NoError(t, err)
	}
	eventually(t, func() bool { return len(c.jobs()) >= keys*each }, "not all jobs are released")
	last := make(map[string]int)
	for _, h := range c.jobs() {
		n, err := strconv.Atoi(h.ID)
		require.NoError(t, err)
		last[h.Key+" "+h.ID]++
		require.Equal(t, 1, last[h.Key+" "+h.ID], "job %d of %s", n, h.Key)
	}
	for _, p := range c.parcels {
		require.LessOrEqual(t, len(p.Jobs), throttle.ParcelSize)
	}
}

func TestJobsThatCannotBeHandedOverGoBack(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	c := courier{fail: 3}
	runScheduler(t, q, &c, throttle.SchedulerConfig{})
	_, err := q.EnqueueMany(t.Context(), numbered("k", 50))
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) >= 50 }, "the jobs did not come again")
	for i, h := range c.jobs() {
		require.Equal(t, strconv.Itoa(i), h.ID, "in their order")
	}
}

func TestReleasedJobsWithoutAParcelComeBack(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	var c courier
	runScheduler(t, q, &c, throttle.SchedulerConfig{Lease: time.Second})
	_, err := q.EnqueueMany(t.Context(), numbered("k", 10))
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) == 20 }, "the jobs were not released a second time")
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	jobs := c.jobs()
	stale, err := p.Depart(t.Context(), time.Minute, p.NewToken(), jobs[:10])
	require.NoError(t, err)
	fresh, err := p.Depart(t.Context(), time.Minute, p.NewToken(), jobs[10:20])
	require.NoError(t, err)
	for i := range 10 {
		require.Equal(t, throttle.Gone, stale[i].Status, "the lost parcel, should it arrive after all")
		require.Equal(t, throttle.Go, fresh[i].Status)
		require.Equal(t, 1, fresh[i].Attempt, "nobody made a call before")
	}
}

func TestReleasedJobsOnTheirWayAreLeftAlone(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	c := courier{alive: true}
	runScheduler(t, q, &c, throttle.SchedulerConfig{Lease: time.Second})
	_, err := q.EnqueueMany(t.Context(), numbered("k", 10))
	require.NoError(t, err)
	eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.asked >= 2
	}, "nobody asked for the parcel")
	require.Len(t, c.jobs(), 10)
}

func TestJobsOfALostWorkerComeBackWithTheirAttempt(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	var c courier
	runScheduler(t, q, &c, throttle.SchedulerConfig{Lease: time.Second})
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: "1", Type: "t"})
	require.NoError(t, err)
	for attempt := 1; attempt <= 3; attempt++ {
		eventually(t, func() bool { return len(c.jobs()) == attempt }, "the job did not come back")
		permits, err := p.Depart(t.Context(), 10*time.Millisecond, p.NewToken(), c.jobs()[attempt-1:])
		require.NoError(t, err)
		require.Equal(t, attempt, permits[0].Attempt)
	}
}

// What an operator or a lost write took away is put back: the lease of a job in
// flight, and a line's entry among the due.
func TestTheAuditRepairsBookkeeping(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	unlimited(t, q)
	var c courier
	runScheduler(t, q, &c, throttle.SchedulerConfig{Lease: time.Second, AuditEvery: 100 * time.Millisecond})
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: "1", Type: "t"})
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) == 1 }, "not released")
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	_, err = p.Depart(t.Context(), time.Hour, p.NewToken(), c.jobs())
	require.NoError(t, err)
	shard := "weir:{" + twoDigits(throttle.ShardOf(q, "k")) + "}:"
	require.NoError(t, server.Client().Del(t.Context(), shard+"lease").Err())
	eventually(t, func() bool { return len(c.jobs()) == 2 }, "the job without a lease was not found")

	_, err = q.Enqueue(t.Context(), throttle.Job{Key: "later", ID: "1", Type: "t", NotBefore: time.Now().Add(time.Second)})
	require.NoError(t, err)
	shard = "weir:{" + twoDigits(throttle.ShardOf(q, "later")) + "}:"
	require.NoError(t, server.Client().ZRem(t.Context(), shard+"due", "later").Err())
	eventually(t, func() bool {
		jobs := c.jobs()
		return jobs[len(jobs)-1].Key == "later"
	}, "the line that was not due was not found")
}

func twoDigits(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }

func TestSchedulingGoesOnAfterAnOutage(t *testing.T) {
	server := throttletest.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	client, err := throttle.Open(server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	q := queueOn(t, client)
	unlimited(t, q)
	var c courier
	runScheduler(t, q, &c, throttle.SchedulerConfig{})
	_, err = q.EnqueueMany(t.Context(), numbered("k", 10))
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) == 10 }, "not released")
	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart())
	eventually(t, func() bool {
		_, err := q.EnqueueMany(t.Context(), numbered("after", 10))
		return err == nil
	}, "the queue does not come back")
	eventually(t, func() bool { return len(c.jobs()) == 20 }, "not released after the outage")
}

// A key that waits for hours costs a scheduler next to nothing, as does none.
func TestWaitingCostsNoCommands(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{{Key: "slow", Limit: throttle.Limit{Rate: 10, Period: time.Hour, Burst: 1}}}))
	c := courier{alive: true}
	runScheduler(t, q, &c, throttle.SchedulerConfig{})
	_, err := q.EnqueueMany(t.Context(), numbered("slow", 1000))
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) == 1 }, "the first job is not released")
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	_, err = p.Depart(t.Context(), time.Hour, p.NewToken(), c.jobs())
	require.NoError(t, err)

	scripts := func() int64 {
		info, err := server.Client().InfoMap(t.Context(), "commandstats").Result()
		require.NoError(t, err)
		var total int64
		for name, stats := range info["Commandstats"] {
			if name == "cmdstat_evalsha" || name == "cmdstat_eval" {
				var calls int64
				for i := len("calls="); i < len(stats) && stats[i] != ','; i++ {
					calls = calls*10 + int64(stats[i]-'0')
				}
				total += calls
			}
		}
		return total
	}
	const watched = 6 * time.Second
	before, began := scripts(), time.Now()
	for range time.Tick(watched) {
		break
	}
	perMinute := float64(scripts()-before) / time.Since(began).Minutes()
	require.LessOrEqual(t, perMinute, 60.0)
}

func TestSchedulerSettingsAreChecked(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	for field, config := range map[string]throttle.SchedulerConfig{
		"lead":        {Lead: time.Millisecond},
		"lease":       {Lease: 500 * time.Millisecond},
		"poll":        {Poll: time.Millisecond},
		"audit_every": {AuditEvery: -time.Second},
	} {
		_, err := throttle.NewScheduler(q, &courier{}, config)
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, field+" ")
	}
	_, err := throttle.NewScheduler(q, nil, throttle.SchedulerConfig{})
	require.ErrorContains(t, err, "dispatcher")
	_, err = throttle.NewPermits(q, time.Minute)
	require.ErrorContains(t, err, "lead 1m0s is not allowed")
}
