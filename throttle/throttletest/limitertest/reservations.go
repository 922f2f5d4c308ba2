package limitertest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// testReservations is about charges for later.
func testReservations(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	ctx := context.Background()
	for _, c := range []struct {
		rule   limiter.Rule
		delays []time.Duration // of reservations one after the other, cost 1, from the epoch on
	}{
		{limiter.FixedWindow(2, time.Second), []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second}},
		{limiter.SlidingLog(2, time.Second), []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second}},
		{limiter.SlidingCounter(2, time.Second), []time.Duration{0, 0, 1500 * ms, 2000 * ms, 3000 * ms}},
		{limiter.TokenBucket(limit("2/s", 2)), []time.Duration{0, 0, 500 * ms, 1000 * ms, 1500 * ms}},
		{limiter.LeakyBucket(limit("2/s", 2)), []time.Duration{0, 0, 500 * ms, 1000 * ms, 1500 * ms}},
		{limiter.LeakyQueue(limit("2/s", 2)), []time.Duration{0, 500 * ms, 1000 * ms, 1500 * ms, 2000 * ms}},
	} {
		t.Run(c.rule.Algorithm().String(), func(t *testing.T) {
			b := newBench(t, open(t), c.rule)
			reserve := func(within time.Duration) *limiter.Reservation {
				r, err := b.l.Reserve(ctx, "k", 1, within)
				require.NoError(t, err)
				return r
			}
			var made []*limiter.Reservation
			for _, want := range c.delays {
				r := reserve(limiter.Forever)
				require.True(t, r.Allowed)
				require.Equal(t, want, r.Delay)
				made = append(made, r)
			}
			before, err := b.l.Peek(ctx, "k")
			require.NoError(t, err)
			require.False(t, before.Allowed)
			require.Zero(t, before.Remaining)

			// The one that came last leaves no trace, and neither does one that would be too late.
			late := reserve(100 * ms)
			require.False(t, late.Allowed)
			require.NoError(t, late.Cancel(ctx))
			last := reserve(limiter.Forever)
			require.NoError(t, last.Cancel(ctx))
			require.NoError(t, last.Cancel(ctx))
			after, err := b.l.Peek(ctx, "k")
			require.NoError(t, err)
			require.Equal(t, before, after)

			// Taken back from the last to the first that is ahead, all is free again.
			for i := len(made) - 1; i >= 2; i-- {
				require.NoError(t, made[i].Cancel(ctx))
			}
			require.Equal(t, c.delays[2], reserve(limiter.Forever).Delay)

			// One that went is not given back.
			b.at(time.Hour)
			gone := reserve(limiter.Forever)
			require.Zero(t, gone.Delay)
			used, err := b.l.Peek(ctx, "k")
			require.NoError(t, err)
			require.NoError(t, gone.Cancel(ctx))
			same, err := b.l.Peek(ctx, "k")
			require.NoError(t, err)
			require.Equal(t, used, same)
		})
	}
	t.Run("out of order", func(t *testing.T) {
		for _, rule := range []limiter.Rule{limiter.FixedWindow(2, time.Second), limiter.SlidingLog(2, time.Second)} {
			b := newBench(t, open(t), rule)
			b.many(2)
			first, err := b.l.Reserve(ctx, "k", 1, limiter.Forever)
			require.NoError(t, err)
			_, err = b.l.Reserve(ctx, "k", 1, limiter.Forever)
			require.NoError(t, err)
			require.NoError(t, first.Cancel(ctx))
			again, err := b.l.Reserve(ctx, "k", 1, limiter.Forever)
			require.NoError(t, err)
			require.Equal(t, time.Second, again.Delay, "its place is free")
		}
	})
	t.Run("one that went is not given back when the clock steps back", func(t *testing.T) {
		for _, rule := range rulesOf(5, time.Hour, 5) {
			b := newBench(t, open(t), rule)
			b.at(time.Minute)
			for range 8 {
				r, err := b.l.Reserve(ctx, "k", 1, 0)
				require.NoError(t, err)
				if rule.Algorithm() == limiter.LeakyQueueAlgorithm && r.Delay > 0 {
					break
				}
				b.at(time.Minute - ms)
				require.NoError(t, r.Cancel(ctx))
				b.at(time.Minute)
			}
			r, err := b.l.Peek(ctx, "k")
			require.NoError(t, err)
			if rule.Algorithm() == limiter.LeakyQueueAlgorithm {
				require.LessOrEqual(t, r.Remaining, int64(4))
			} else {
				require.Zero(t, r.Remaining, "%v", rule)
			}
		}
	})
	t.Run("forgotten before it is cancelled", func(t *testing.T) {
		for _, rule := range rulesOf(1, time.Second, 1) {
			b := newBench(t, open(t), rule)
			b.many(1)
			r, err := b.l.Reserve(ctx, "k", 1, limiter.Forever)
			require.NoError(t, err)
			require.NoError(t, b.l.Reset(ctx, "k"))
			require.True(t, b.allow("k", 1).Allowed)
			require.NoError(t, r.Cancel(ctx))
			require.False(t, b.allow("k", 1).Allowed, "%v", rule)
		}
	})
	t.Run("places in a queue", func(t *testing.T) {
		b := newBench(t, open(t), limiter.LeakyQueue(limit("1/s", 10)))
		require.Equal(t, 6, b.many(6))
		before, err := b.l.Peek(ctx, "k")
		require.NoError(t, err)
		short, stop := context.WithTimeout(ctx, 300*ms)
		defer stop()
		var late *limiter.LateError
		require.ErrorAs(t, b.l.Wait(short, "k", 1), &late)
		require.Equal(t, 6*time.Second, late.Result.RetryAfter)
		no, err := b.l.Reserve(ctx, "k", 1, 0)
		require.NoError(t, err)
		require.False(t, no.Allowed)
		r, err := b.l.Reserve(ctx, "k", 2, time.Minute)
		require.NoError(t, err)
		require.Equal(t, 6*time.Second, r.Delay)
		b.at(3 * time.Second)
		require.NoError(t, r.Cancel(ctx))
		b.at(0)
		after, err := b.l.Peek(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	t.Run("in the far future", func(t *testing.T) {
		for _, rule := range []limiter.Rule{
			limiter.SlidingCounter(1, throttle.MaxPeriod), limiter.SlidingLog(1, throttle.MaxPeriod), limiter.FixedWindow(1, throttle.MaxPeriod),
			limiter.TokenBucket(throttle.Limit{Rate: 1, Period: throttle.MaxPeriod, Burst: 1}),
			limiter.LeakyBucket(throttle.Limit{Rate: 1, Period: throttle.MaxPeriod, Burst: 40}),
		} {
			b := newBench(t, open(t), rule)
			last := time.Duration(0)
			for range 200 {
				r, err := b.l.Reserve(ctx, "k", 1, limiter.Forever)
				require.NoError(t, err)
				if !r.Allowed {
					require.Greater(t, r.RetryAfter, limiter.Forever)
					break
				}
				require.GreaterOrEqual(t, r.Delay, last, "%v", rule)
				last = r.Delay
			}
			require.Greater(t, last, limiter.Forever-3*throttle.MaxPeriod, "%v", rule)
		}
	})
	t.Run("a wait that is too long", func(t *testing.T) {
		b := newBench(t, open(t), limiter.TokenBucket(limit("1/h", 1)))
		require.NoError(t, b.l.Wait(ctx, "k", 1))
		short, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		err := b.l.Wait(short, "k", 1)
		var late *limiter.LateError
		require.ErrorAs(t, err, &late)
		require.Equal(t, time.Hour, late.Result.RetryAfter)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
	t.Run("a wait that is given up", func(t *testing.T) {
		b := newBench(t, open(t), limiter.TokenBucket(limit("1/h", 1)))
		require.NoError(t, b.l.Wait(ctx, "k", 1))
		before, err := b.l.Peek(ctx, "k")
		require.NoError(t, err)
		given, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- b.l.Wait(given, "k", 1) }()
		require.Eventually(t, func() bool {
			r, err := b.l.Peek(ctx, "k")
			return err == nil && r.RetryAfter == 2*time.Hour
		}, 10*time.Second, ms)
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
		after, err := b.l.Peek(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.ErrorIs(t, b.l.Wait(given, "k", 1), context.Canceled)
	})
}
