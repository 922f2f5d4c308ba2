package worker

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestRetryCeiling(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		name      string
		base, cap time.Duration
		attempt   int
		want      time.Duration
	}{
		{"first", time.Second, time.Minute, 1, time.Second},
		{"second", time.Second, time.Minute, 2, 2 * time.Second},
		{"doubles", time.Second, time.Minute, 6, 32 * time.Second},
		{"reaches the cap", time.Second, time.Minute, 7, time.Minute},
		{"stays at the cap", time.Second, time.Minute, 1_000_000_000, time.Minute},
		{"exactly the cap", time.Second, 4 * time.Second, 3, 4 * time.Second},
		{"cap is the base", time.Second, time.Second, 1, time.Second},
		{"no jump over the cap", 3 * time.Second, 10 * time.Second, 3, 10 * time.Second},
		{"cap beyond doubling", time.Nanosecond, longest, 63, 1 << 62},
		{"no overflow", time.Nanosecond, longest, 64, longest},
		{"far beyond", time.Nanosecond, longest, math.MaxInt, longest},
		{"large base", 1 << 62, longest, 2, longest},
		{"no attempt yet", time.Second, time.Minute, 0, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := RetryPolicy{Base: c.base, Cap: c.cap}
			require.Equal(t, c.want, p.ceiling(c.attempt))
			for range 100 {
				d := p.delay(c.attempt)
				require.GreaterOrEqual(t, d, time.Duration(0))
				require.LessOrEqual(t, d, c.want)
			}
		})
	}
}

// Jobs that failed together come back evenly over the whole delay.
func TestRetriesAreSpread(t *testing.T) {
	const n, bins = 10_000, 10
	p := RetryPolicy{Base: time.Minute, Cap: time.Hour}
	var count [bins]int
	var delays []time.Duration
	for range n {
		d := p.delay(1)
		delays = append(delays, d)
		count[min(bins-1, int(d*bins/time.Minute))]++
	}
	for i, c := range count {
		require.InDelta(t, n/bins, c, 200, "bin %d", i) // more than six standard deviations
	}
	slices.Sort(delays)
	require.Greater(t, len(slices.Compact(delays)), n/2)
}

func TestRetryDefaults(t *testing.T) {
	require.Equal(t, RetryPolicy{Base: time.Second, Cap: 10 * time.Minute, MaxAttempts: 10}, RetryPolicy{}.withDefaults())
	long := RetryPolicy{Base: time.Hour}.withDefaults()
	require.Equal(t, time.Hour, long.Cap, "a base beyond the default cap is no error")
	require.NoError(t, long.validate())
	own := RetryPolicy{Base: 1, Cap: 2, MaxAttempts: 3}
	require.Equal(t, own, own.withDefaults())
}

func TestRetryPolicyRefuses(t *testing.T) {
	for _, c := range []struct {
		policy RetryPolicy
		want   []string
	}{
		{RetryPolicy{Base: -time.Second}, []string{"retry base -1s is not allowed"}},
		{RetryPolicy{Base: time.Minute, Cap: time.Second}, []string{"retry cap 1s is not allowed", "base of 1m0s"}},
		{RetryPolicy{Cap: -time.Second}, []string{"retry cap -1s is not allowed"}},
		{RetryPolicy{MaxAttempts: -1}, []string{"retry max attempts -1 is not allowed", "at least 1"}},
		{RetryPolicy{Base: -1, MaxAttempts: -2}, []string{"retry base -1ns", "retry max attempts -2"}},
	} {
		err := c.policy.withDefaults().validate()
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestJobsOwnAttemptsWin(t *testing.T) {
	p := RetryPolicy{MaxAttempts: 10}
	require.Equal(t, 10, p.attempts(throttle.Job{}))
	require.Equal(t, 1, p.attempts(throttle.Job{MaxAttempts: 1}))
	require.Equal(t, 50, p.attempts(throttle.Job{MaxAttempts: 50}))
}

// A list of delays is gone through, give or take a tenth, and its last one stays.
func TestRetriesAlongAList(t *testing.T) {
	p := RetryPolicy{Delays: StandardDelays()}.withDefaults()
	require.NoError(t, p.validate())
	require.Equal(t, 8, p.MaxAttempts)
	for attempt, want := range map[int]time.Duration{0: 5 * time.Second, 1: 5 * time.Second, 2: 5 * time.Minute, 7: 10 * time.Hour, 8: 10 * time.Hour, 99: 10 * time.Hour} {
		least, most := want, want
		for range 1000 {
			d := p.delay(attempt)
			require.InDelta(t, want, d, float64(want)/10, "attempt %d", attempt)
			least, most = min(least, d), max(most, d)
		}
		require.Greater(t, most-least, want/10, "they are spread")
	}
	require.Equal(t, 3, RetryPolicy{Delays: StandardDelays(), MaxAttempts: 3}.withDefaults().MaxAttempts)
	require.ErrorContains(t, RetryPolicy{Delays: []time.Duration{time.Second, 0}}.withDefaults().validate(), "retry delays[1] 0s is not allowed: want 1ms to")
}
