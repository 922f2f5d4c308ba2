package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// A server without memory left refuses new jobs and lets those it has end.
func TestAFullServerRefusesJobsAndLetsOthersEnd(t *testing.T) {
	server := throttletest.StartRedis(t)
	client := server.Client()
	q := queueOn(t, client)
	unlimited(t, q)
	var c courier
	stop := runScheduler(t, q, &c, throttle.SchedulerConfig{})
	_, err := q.EnqueueMany(t.Context(), numbered("running", 10))
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) == 10 }, "not released")
	stop()
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	permits, err := p.Depart(t.Context(), time.Minute, p.NewToken(), c.jobs()[:5])
	require.NoError(t, err)
	waiting := numbered("waiting", 100)
	for i := range waiting {
		waiting[i].Payload = make([]byte, 10_000)
	}
	_, err = q.EnqueueMany(t.Context(), waiting)
	require.NoError(t, err)

	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	before, err := client.DBSize(t.Context()).Result()
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), throttle.Job{Key: "new", ID: "1", Type: "t"})
	require.ErrorContains(t, err, "OOM")
	after, err := client.DBSize(t.Context()).Result()
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing half-written")

	k, err := q.Key(t.Context(), "running")
	require.NoError(t, err)
	require.Equal(t, int64(10), k.InFlight)
	late, err := p.Depart(t.Context(), time.Minute, p.NewToken(), c.jobs()[5:])
	require.NoError(t, err)
	var endings []throttle.Ending
	for i, h := range c.jobs() {
		h.Run = append(permits, late...)[i].Run
		endings = append(endings, throttle.Ending{Hold: h, What: throttle.Done})
	}
	held, err := p.Finish(t.Context(), endings)
	require.NoError(t, err)
	require.NotContains(t, held, false)
	n, err := q.Purge(t.Context(), "waiting")
	require.NoError(t, err)
	require.Equal(t, int64(100), n)
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	names, err := client.Keys(t.Context(), "weir:{*}:[bwdjs]:running").Result()
	require.NoError(t, err)
	require.LessOrEqual(t, len(names), 1, "of a key without jobs at most the level is left")
}

// Jobs that wait feel a new limit, also one that was going to let them go hours later.
func TestANewLimitReachesWaitingJobs(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	slow := throttle.Policy{Key: "k", Limit: throttle.Limit{Rate: 1, Period: time.Hour, Burst: 1}}
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{slow}))
	var c courier
	runScheduler(t, q, &c, throttle.SchedulerConfig{})
	_, err := q.EnqueueMany(t.Context(), numbered("k", 20))
	require.NoError(t, err)
	eventually(t, func() bool { return len(c.jobs()) == 1 }, "not released")
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	_, err = p.Depart(t.Context(), time.Hour, p.NewToken(), c.jobs())
	require.NoError(t, err)

	fast := slow
	fast.Limit = throttle.Limit{Rate: 1000, Period: time.Second, Burst: 20}
	require.NoError(t, q.SetPolicies(t.Context(), []throttle.Policy{fast}))
	eventually(t, func() bool { return len(c.jobs()) == 20 }, "the jobs still wait for the old limit")
}
