package throttle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// A client whose answer was lost repeats its call. By then the job may have ended: it
// must not be taken for a new one.
func TestARepeatedEnqueueIsAnsweredAsBefore(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	q := queueOn(t, client)
	call := script.NewSet().Enqueue(throttle.ShardOf(q, "k"), -1, []script.Entry{
		{Key: "k", ID: "1", Cost: 1, Pool: throttle.DefaultPool, Job: []byte("{}\n")},
	})
	require.NoError(t, script.Run(t.Context(), client, call))
	first := call.Placed(1).Places
	_, err := q.Purge(t.Context(), "k")
	require.NoError(t, err)
	require.NoError(t, script.Run(t.Context(), client, call))
	again := call.Placed(1).Places
	require.Equal(t, first, again)
	k, err := q.Key(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, k.Waiting)
}

// picky refuses the parcels of one pool.
type picky struct {
	courier
	pool string
}

func (p *picky) Dispatch(ctx context.Context, parcels []throttle.Parcel) error {
	if parcels[0].Pool == p.pool {
		return errors.New("no way to this pool")
	}
	return p.courier.Dispatch(ctx, parcels)
}

func TestAPoolThatCannotBeReachedHoldsUpNoOther(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	unlimited(t, q)
	d := &picky{pool: "bad"}
	runScheduler(t, q, d, throttle.SchedulerConfig{})
	bad := numbered("bad", 5)
	for i := range bad {
		bad[i].Pool = "bad"
	}
	_, err := q.EnqueueMany(t.Context(), bad)
	require.NoError(t, err)
	const rounds = 40
	began := time.Now()
	for i := range rounds {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: "good", Type: "t"})
		require.NoError(t, err)
		eventually(t, func() bool { return len(d.jobs()) == i+1 }, "a job of another pool waits")
	}
	require.Less(t, time.Since(began), 10*time.Second)
}
