package webhook

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// paused tells which keys are.
func (b *bench) paused(t *testing.T) (keys []string) {
	t.Helper()
	holds, err := b.queue.Holds(t.Context())
	require.NoError(t, err)
	for _, h := range holds {
		if h.Paused {
			keys = append(keys, h.Name)
		}
	}
	return keys
}

func TestDisableAndEnable(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1"})
	e, err := b.endpoints.Disable(t.Context(), "ep_1", "410 for a week")
	require.NoError(t, err)
	require.True(t, e.Disabled)
	require.Equal(t, "410 for a week", e.DisabledReason)
	require.Equal(t, e, b.get(t, "ep_1"))
	require.Equal(t, []string{"webhook:ep_1"}, b.paused(t))

	// It is what the record says that counts: a second call mends what a first left undone.
	require.NoError(t, b.queue.Resume(t.Context(), e.Key))
	_, err = b.endpoints.Disable(t.Context(), "ep_1", "still")
	require.NoError(t, err)
	require.Equal(t, []string{"webhook:ep_1"}, b.paused(t))

	e, err = b.endpoints.Enable(t.Context(), "ep_1")
	require.NoError(t, err)
	require.False(t, e.Disabled)
	require.Empty(t, e.DisabledReason)
	require.Empty(t, b.paused(t))

	_, err = b.endpoints.Disable(t.Context(), "ep_1", "\xff")
	require.ErrorIs(t, err, throttle.ErrInvalid)
	_, err = b.endpoints.Disable(t.Context(), "none", "")
	require.ErrorIs(t, err, ErrNotFound)
	require.Empty(t, b.paused(t))
}

func TestAKeyThatIsSharedIsPausedAsLongAsOneIsDisabled(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"ep_1", "ep_2", "ep_3"} {
		b.create(t, Endpoint{ID: id, Key: "tenant"})
	}
	for _, id := range []string{"ep_1", "ep_2"} {
		_, err := b.endpoints.Disable(t.Context(), id, "")
		require.NoError(t, err)
	}
	_, err := b.endpoints.Enable(t.Context(), "ep_1")
	require.NoError(t, err)
	require.Equal(t, []string{"tenant"}, b.paused(t))
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_3"))
	require.Equal(t, []string{"tenant"}, b.paused(t))
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_2"))
	require.Empty(t, b.paused(t), "the last that was disabled is gone")
}

// Whoever is the last to change an endpoint, the key is held as its record says.
func TestDisableAndEnableAtOnce(t *testing.T) {
	b := newBench(t)
	b.create(t, Endpoint{ID: "ep_1"})
	for range 10 {
		var both sync.WaitGroup
		disabler, enabler := b.others(t), b.others(t)
		both.Go(func() { _, _ = disabler.Disable(context.Background(), "ep_1", "") })
		both.Go(func() { _, _ = enabler.Enable(context.Background(), "ep_1") })
		both.Wait()
		require.Equal(t, b.get(t, "ep_1").Disabled, len(b.paused(t)) > 0)
	}
}

func TestThePolicyOfAnEndpointEndsWithIt(t *testing.T) {
	b := newBench(t)
	live := func() map[string]throttle.Limit {
		stored, err := b.queue.Policies(t.Context())
		require.NoError(t, err)
		limits := make(map[string]throttle.Limit)
		for _, p := range stored {
			limits[p.Key] = p.Limit
		}
		return limits
	}
	limit := throttle.Limit{Rate: 3, Period: time.Minute, Burst: 2}
	b.create(t, Endpoint{ID: "ep_1"})
	b.create(t, Endpoint{ID: "ep_2", Key: "tenant"})
	b.create(t, Endpoint{ID: "ep_3", Key: "tenant"})
	for _, id := range []string{"ep_1", "ep_2"} {
		require.NoError(t, b.endpoints.SetPolicy(t.Context(), id, &throttle.Policy{Key: "ignored", Limit: limit}))
	}
	require.Equal(t, map[string]throttle.Limit{"webhook:ep_1": limit, "tenant": limit}, live())

	err := b.endpoints.SetPolicy(t.Context(), "ep_1", &throttle.Policy{})
	require.ErrorIs(t, err, throttle.ErrInvalid)
	require.ErrorIs(t, b.endpoints.SetPolicy(t.Context(), "none", nil), ErrNotFound)

	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_1"))
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_2"))
	require.Equal(t, map[string]throttle.Limit{"tenant": limit}, live(), "another endpoint needs it")
	require.NoError(t, b.endpoints.SetPolicy(t.Context(), "ep_3", nil))
	require.Empty(t, live())
	require.NoError(t, b.endpoints.SetPolicy(t.Context(), "ep_3", &throttle.Policy{Limit: limit}))
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_3"))
	require.Empty(t, live())

	// A policy that somebody else set stays.
	b.create(t, Endpoint{ID: "ep_4"})
	require.NoError(t, b.queue.SetPolicy(t.Context(), throttle.Policy{Key: "webhook:ep_4", Limit: limit}))
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_4"))
	require.Len(t, live(), 1)
}
