package throttle_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func queueOn(t *testing.T, client redis.UniversalClient) *throttle.Queue {
	t.Helper()
	q, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	return q
}

func TestAServerThatMayEvictIsRefused(t *testing.T) {
	server := throttletest.StartRedis(t)
	set := func(limit, policy string) {
		require.NoError(t, server.Client().ConfigSet(t.Context(), "maxmemory", limit).Err())
		require.NoError(t, server.Client().ConfigSet(t.Context(), "maxmemory-policy", policy).Err())
	}
	for _, policy := range []string{"allkeys-lru", "volatile-lru", "allkeys-random"} {
		set("100mb", policy)
		_, err := throttle.NewQueue(t.Context(), server.Client(), throttle.QueueConfig{})
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, `redis maxmemory-policy "`+policy+`" is not allowed: want noeviction`)
		n, err := server.Client().DBSize(t.Context()).Result()
		require.NoError(t, err)
		require.Zero(t, n, "nothing is written")
	}
	set("100mb", "noeviction")
	queueOn(t, server.Client())
	set("0", "allkeys-lru") // without a bound there is nothing to evict for
	queueOn(t, server.Client())
}

func TestTheNumberOfShardsIsFixed(t *testing.T) {
	server := throttletest.StartRedis(t)
	queueOn(t, server.Client())
	_, err := throttle.NewQueue(t.Context(), server.Client(), throttle.QueueConfig{Shards: 8})
	require.ErrorContains(t, err, "shards 8 is not allowed: want 16")
	for _, n := range []int{-1, throttle.MaxShards + 1} {
		_, err := throttle.NewQueue(t.Context(), server.Client(), throttle.QueueConfig{Shards: n})
		require.ErrorIs(t, err, throttle.ErrInvalid)
	}
	_, err = throttle.NewQueue(t.Context(), nil, throttle.QueueConfig{})
	require.ErrorContains(t, err, "client")
	_, err = throttle.NewQueue(t.Context(), server.Client(), throttle.QueueConfig{MaxJobSize: -1})
	require.ErrorContains(t, err, "max_job_size -1 is not allowed")
}

func TestARedisThatIsAwayIsToldSoon(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	require.NoError(t, server.Stop())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := throttle.NewQueue(ctx, server.Client(), throttle.QueueConfig{})
	require.ErrorContains(t, err, "redis is not")
	receipts, err := q.EnqueueMany(ctx, []throttle.Job{{Key: "k", ID: "1", Type: "t"}})
	require.ErrorContains(t, err, "enqueue: ")
	require.Empty(t, receipts[0].ID, "a job that was not stored has no receipt")
}

func TestADeadlineCutsAStalledCall(t *testing.T) {
	server := throttletest.StartRedis(t)
	client, err := throttle.Open(server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	q := queueOn(t, client)
	require.NoError(t, server.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = q.Enqueue(ctx, throttle.Job{Key: "k", Type: "t"})
	took := time.Since(began)
	require.NoError(t, server.Resume())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, took, 2*time.Second, "a stalled call is cut long before Redis answers")
}

func TestOneBadJobStoresNone(t *testing.T) {
	server := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), server.Client(), throttle.QueueConfig{MaxJobSize: 10})
	require.NoError(t, err)
	before, err := server.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	for text, bad := range map[string]throttle.Job{
		`jobs[1].payload 11 is not allowed: want at most 10 bytes`: {Key: "k", Type: "t", Payload: make([]byte, 11)},
		`jobs[1].key "" is not allowed`:                            {Type: "t"},
		`jobs[1].cost -1 is not allowed`:                           {Key: "k", Type: "t", Cost: -1},
		`jobs[1].policy.burst 0 is not allowed`:                    {Key: "k", Type: "t", Policy: &throttle.Policy{Limit: throttle.Limit{Rate: 1, Period: time.Second}}},
	} {
		good := throttle.Job{Key: "k", Type: "t", Payload: make([]byte, 10)}
		_, err := q.EnqueueMany(t.Context(), []throttle.Job{good, bad, good})
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
	after, err := server.Client().DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestBadPoliciesChangeNothing(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	limit := throttle.Limit{Rate: 7, Period: time.Second, Burst: 3}
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{{Key: "k", Limit: limit}}))
	for text, bad := range map[string]throttle.Policy{
		"policies[1].rate 0 is not allowed":   {Key: "b", Limit: throttle.Limit{Period: time.Second, Burst: 1}},
		"policies[1].burst -1 is not allowed": {Key: "b", Limit: throttle.Limit{Rate: 1, Period: time.Second, Burst: -1}},
		`policies[1].key "a" is not allowed`:  {Key: "a", Limit: limit},
		`policies[1].key "" is not allowed`:   {Limit: limit},
	} {
		err := q.SetPolicies(t.Context(), []throttle.Policy{{Key: "a", Limit: limit}, bad})
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorContains(t, err, text)
	}
	k, err := q.Key(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, limit, k.Policy.Limit)
	a, err := q.Key(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, throttle.DefaultPolicy.Limit, a.Policy.Limit)
}

// The scripts' own default is that of the package.
func TestAKeyWithoutAPolicyHasTheDefault(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	k, err := q.Key(t.Context(), "nobody's")
	require.NoError(t, err)
	want := throttle.DefaultPolicy
	want.Key = "nobody's"
	require.Equal(t, want, k.Policy)
	require.Zero(t, k.Waiting+k.Delayed+k.InFlight)
}

// An exact policy wins over the one a job brings, which wins over the default.
func TestPrecedenceOfPolicies(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	limit := func(n int64) throttle.Limit { return throttle.Limit{Rate: n, Period: time.Second, Burst: 1} }
	in := func(key string) int64 {
		k, err := q.Key(t.Context(), key)
		require.NoError(t, err)
		return k.Policy.Limit.Rate
	}
	for _, key := range []string{"exact", "brought", "default"} {
		j := throttle.Job{Key: key, Type: "t"}
		if key != "default" {
			j.Policy = &throttle.Policy{Limit: limit(2)}
		}
		_, err := q.Enqueue(t.Context(), j)
		require.NoError(t, err)
	}
	require.Equal(t, []int64{2, 2, 10}, []int64{in("exact"), in("brought"), in("default")})
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{
		{Key: "exact", Limit: limit(1)}, {Key: throttle.AnyKey, Limit: limit(3)},
	}))
	require.Equal(t, []int64{1, 2, 3}, []int64{in("exact"), in("brought"), in("default")}, "jobs that wait get the new policy")
	require.NoError(t, q.SetPolicies(t.Context(), nil))
	require.Equal(t, []int64{2, 2, 10}, []int64{in("exact"), in("brought"), in("default")})
}

func TestReceiptsTellPlaceAndDeparture(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{{Key: "k", Limit: throttle.Limit{Rate: 1, Period: time.Minute, Burst: 2}}}))
	now, err := server.Client().Time(t.Context()).Result()
	require.NoError(t, err)
	var jobs []throttle.Job
	for i := range 4 {
		jobs = append(jobs, throttle.Job{Key: "k", ID: strconv.Itoa(i), Type: "t"})
	}
	receipts, err := q.EnqueueMany(t.Context(), jobs)
	require.NoError(t, err)
	for i, wait := range []time.Duration{0, 0, time.Minute, 2 * time.Minute} {
		require.Equal(t, int64(i+1), receipts[i].Position)
		require.Equal(t, strconv.Itoa(i), receipts[i].ID)
		require.False(t, receipts[i].Duplicate)
		require.WithinDuration(t, now.Add(wait), receipts[i].EstimatedDeparture, 5*time.Second)
	}
	again, err := q.Enqueue(t.Context(), jobs[3])
	require.NoError(t, err)
	require.True(t, again.Duplicate)
	require.Equal(t, int64(4), again.Position)
	require.WithinDuration(t, receipts[3].EstimatedDeparture, again.EstimatedDeparture, 5*time.Second)

	later, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: "later", Type: "t", NotBefore: now.Add(time.Hour)})
	require.NoError(t, err)
	require.Zero(t, later.Position)
	require.WithinDuration(t, now.Add(time.Hour), later.EstimatedDeparture, 5*time.Second)
	info, err := q.Job(t.Context(), "k", "later")
	require.NoError(t, err)
	require.Equal(t, throttle.Delayed, info.State)
	_, err = q.Job(t.Context(), "k", "nobody")
	require.ErrorIs(t, err, throttle.ErrNoJob)

	n, err := q.Purge(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, int64(5), n)
	k, err := q.Key(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, k.Waiting+k.Delayed+k.InFlight)
}

var oddKeys = []string{
	"plain", "a{b}c", "{x}", "}{", "a:b", "a b", "é", "🚰", "\x00", "a\r\nb\tc", "weir:{03}:due", "*",
	strings.Repeat("k", 512), strings.Repeat("{", 512),
}

// All names of a key are in the slot of its shard, whatever it is called.
func TestOddKeysStayInOneSlotOfACluster(t *testing.T) {
	cluster := throttletest.StartCluster(t)
	q := queueOn(t, cluster.Client())
	scheduler := handedOver(t, q)
	for _, key := range oddKeys {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: key, ID: "1", Type: "t", Cost: 2, Policy: &throttle.Policy{Limit: throttle.DefaultPolicy.Limit}})
		require.NoError(t, err, "%q", key)
	}
	seen := make(map[string]bool)
	for range oddKeys {
		hold := <-scheduler
		seen[hold.Key] = true
		p, err := throttle.NewPermits(q, 0)
		require.NoError(t, err)
		permits, err := p.Depart(t.Context(), time.Minute, p.NewToken(), []throttle.Hold{hold})
		require.NoError(t, err)
		require.Equal(t, throttle.Go, permits[0].Status)
		require.Equal(t, hold.Key, permits[0].Job.Key)
		hold.Run = permits[0].Run
		held, err := p.Finish(t.Context(), []throttle.Ending{{Hold: hold, What: throttle.Dead, Reason: "test"}})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, held)
		dead, err := q.Jobs(t.Context(), hold.Key, throttle.Dead, throttle.Page{})
		require.NoError(t, err)
		require.Len(t, dead.Jobs, 1)
		require.Equal(t, hold.Key, dead.Jobs[0].Key)
	}
	for _, key := range oddKeys {
		require.True(t, seen[key], "%q came back byte for byte", key)
	}
}

// handedOver runs a scheduler and returns what it hands over.
func handedOver(t *testing.T, q *throttle.Queue) <-chan throttle.Hold {
	t.Helper()
	out := make(handover, 1000)
	s, err := throttle.NewScheduler(q, out, throttle.SchedulerConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return out
}

type handover chan throttle.Hold

func (h handover) Dispatch(_ context.Context, parcels []throttle.Parcel) error {
	for _, p := range parcels {
		for _, j := range p.Jobs {
			h <- j
		}
	}
	return nil
}

func (h handover) Alive(context.Context, string, string) (bool, error) { return true, nil }

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	server := throttletest.StartRedis(t)
	q := queueOn(t, server.Client())
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{{
		Key: throttle.AnyKey, Limit: throttle.Limit{Rate: 100_000, Period: time.Second, Burst: 100_000}, MaxInFlight: 100_000,
	}}))
	out := handedOver(t, q)
	flushing, stop := context.WithCancel(t.Context())
	flushed := make(chan int)
	go func() {
		n := 0
		for flushing.Err() == nil {
			if server.Client().ScriptFlush(flushing).Err() == nil {
				n++
			}
			<-time.After(5 * time.Millisecond)
		}
		flushed <- n
	}()
	const rounds, each = 100, 20
	next := make(map[string]int)
	for round := range rounds {
		var jobs []throttle.Job
		for i := range each {
			jobs = append(jobs, throttle.Job{Key: fmt.Sprint("k", i%4), ID: fmt.Sprintf("%d", round*each+i), Type: "t"})
		}
		receipts, err := q.EnqueueMany(t.Context(), jobs)
		require.NoError(t, err)
		require.Len(t, receipts, each)
		for range each {
			h := <-out
			n, err := strconv.Atoi(h.ID)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, next[h.Key], "jobs of a key keep their order")
			next[h.Key] = n + 1
		}
	}
	stop()
	require.Greater(t, <-flushed, 10)
}
