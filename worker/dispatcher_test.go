package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

func parcel(round string, n int, pool string) throttle.Parcel {
	return throttle.Parcel{
		ID: throttle.ParcelID(round, n), Round: round, Pool: pool,
		Jobs: []throttle.Hold{{Key: "k", ID: fmt.Sprint(n), Release: 1}},
	}
}

func TestParcelThatWasHandedOverAlreadyIsASuccess(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	d := worker.NewDispatcher(s.client)
	for range 3 {
		require.NoError(t, d.Dispatch(t.Context(), []throttle.Parcel{parcel("r", 0, "mail"), parcel("r", 1, "mail")}))
	}
	look := asynq.NewInspectorFromRedisClient(s.client)
	tasks, err := look.ListPendingTasks("mail")
	require.NoError(t, err)
	require.Len(t, tasks, 2)
	for _, task := range tasks {
		// asynq gives up by neither count nor time: the jobs' attempts and leases are ours.
		require.Greater(t, task.MaxRetry, 1_000_000)
		require.Greater(t, task.Timeout, 365*24*time.Hour)
	}
}

func TestDispatchTellsOfRedisThatIsAway(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	require.NoError(t, s.redis.Stop())
	err := worker.NewDispatcher(s.client).Dispatch(t.Context(), []throttle.Parcel{parcel("r", 0, "mail")})
	require.ErrorContains(t, err, "enqueue parcel r.0")
}

func TestParcelIsAliveUntilItIsDelivered(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	d := worker.NewDispatcher(s.client)
	alive := func(round, pool string) bool {
		ok, err := d.Alive(t.Context(), round, pool)
		require.NoError(t, err)
		return ok
	}
	require.False(t, alive("r", "mail"), "a pool that was never used")
	require.NoError(t, d.Dispatch(t.Context(), []throttle.Parcel{parcel("r", 7, "mail"), parcel("q", 0, "other")}))
	require.True(t, alive("r", "mail"))
	require.False(t, alive("q", "mail"), "a parcel of another pool")
	require.False(t, alive("x", "mail"))

	look := asynq.NewInspectorFromRedisClient(s.client)
	require.NoError(t, look.ArchiveTask("mail", "weir:"+throttle.ParcelID("r", 7)))
	require.False(t, alive("r", "mail"), "nobody delivers an archived task")
}

// What counts is whether the server that took it is alive.
func TestParcelThatAServerTookIsAliveWithItsServer(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	d := worker.NewDispatcher(s.client)
	alive := func() bool {
		ok, err := d.Alive(t.Context(), "r", "mail")
		require.NoError(t, err)
		return ok
	}
	require.NoError(t, d.Dispatch(t.Context(), []throttle.Parcel{parcel("r", 0, "mail")}))
	// As asynq's dequeue does, for a server that died thereafter.
	id := "weir:" + throttle.ParcelID("r", 0)
	require.NoError(t, s.client.LMove(t.Context(), "asynq:{mail}:pending", "asynq:{mail}:active", "RIGHT", "LEFT").Err())
	require.NoError(t, s.client.HSet(t.Context(), "asynq:{mail}:t:"+id, "state", "active").Err())
	require.False(t, alive())

	g := make(gate)
	server := asynq.NewServerFromRedisClient(s.client, asynq.Config{Queues: map[string]int{"mail": 1}, LogLevel: asynq.FatalLevel})
	require.NoError(t, server.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return g.pass(ctx) })))
	defer server.Shutdown()
	defer close(g)
	require.NoError(t, s.client.LMove(t.Context(), "asynq:{mail}:active", "asynq:{mail}:pending", "RIGHT", "LEFT").Err())
	s.eventually(alive, "the server does not tell what it works on")
}

// A job runs in the pool that it names, and nowhere else.
func TestJobsRunInTheirPools(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("1000/s", 100, "k")
	all := jobs("k", 30)
	pools := []string{throttle.DefaultPool, "Reports", "mail"}
	for i := range all {
		all[i].Pool = pools[i%3]
	}
	all[0].Pool = "" // the default
	var served []*calls
	for _, pool := range pools {
		c := s.calls()
		s.work(worker.Config{Pools: map[string]int{pool: 1}}, c.handler(nil))
		served = append(served, c)
	}
	s.schedule()
	s.enqueue(all...)
	for i, c := range served {
		c.wait("k", 10)
		for _, j := range c.of("k") {
			require.Equal(t, i, (number(t, j.ID)-1)%3)
		}
	}
	s.empty("k")

	both := s.calls()
	s.work(worker.Config{Pools: map[string]int{"slow": 1, "fast": 10}}, both.handler(nil))
	all = jobs("l", 10)
	for i := range all {
		all[i].Pool = []string{"slow", "fast"}[i%2]
	}
	s.limit("1000/s", 100, "l")
	s.enqueue(all...)
	both.wait("l", 10)
	s.empty("l")
	require.Len(t, both.of("l"), 10)
}
