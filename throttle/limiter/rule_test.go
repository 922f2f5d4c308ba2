package limiter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

func TestLimitersThatCannotBe(t *testing.T) {
	store := limiter.NewMemory(limiter.MemoryConfig{})
	good := limiter.FixedWindow(1, time.Second)
	for _, c := range []struct {
		name  string
		rules []limiter.Rule
		want  string
	}{
		{"", []limiter.Rule{good}, `name "" is not allowed`},
		{"a b", []limiter.Rule{good}, `name "a b" is not allowed: want 1 to 64 letters`},
		{"a{b", []limiter.Rule{good}, `name`},
		{strings.Repeat("x", 65), []limiter.Rule{good}, `name`},
		{"l", nil, `rules 0 is not allowed: want 1 to 8`},
		{"l", make([]limiter.Rule, 9), `rules 9 is not allowed`},
		{"l", make([]limiter.Rule, 1), `rules[0].algorithm 0 is not allowed: want a rule made by FixedWindow`},
		{"l", []limiter.Rule{good, limiter.FixedWindow(0, time.Second)}, `rules[1].rate 0 is not allowed: want 1 to`},
		{"l", []limiter.Rule{limiter.SlidingCounter(-1, time.Second)}, `rules[0].rate -1`},
		{"l", []limiter.Rule{limiter.FixedWindow(1, 0)}, `rules[0].period 0s`},
		{"l", []limiter.Rule{limiter.FixedWindow(1, 1500*time.Nanosecond)}, `rules[0].period`},
		{"l", []limiter.Rule{limiter.SlidingLog(limiter.MaxLog+1, time.Second)}, `want 1 to 10000 per window for a sliding log`},
		{"l", []limiter.Rule{limiter.TokenBucket(throttle.Limit{Rate: 5, Period: time.Second})}, `rules[0].burst 0`},
		{"l", []limiter.Rule{limiter.LeakyBucket(throttle.Limit{Rate: 5, Period: time.Second, Burst: -1})}, `rules[0].burst -1`},
		{"l", []limiter.Rule{limiter.LeakyQueue(throttle.Limit{Period: time.Second, Burst: 1})}, `rules[0].rate 0`},
		{"l", []limiter.Rule{limiter.TokenBucket(throttle.Limit{Rate: 1, Period: throttle.MaxPeriod, Burst: throttle.MaxBurst})}, `rules[0].burst 1000000000`},
	} {
		_, err := limiter.New(store, c.name, c.rules...)
		require.ErrorIs(t, err, throttle.ErrInvalid, c.want)
		require.ErrorContains(t, err, c.want)
	}
	_, err := limiter.New(nil, "l", good)
	require.ErrorContains(t, err, "want NewRedis or NewMemory")
}

func TestLimitersSayWhatTheyAre(t *testing.T) {
	l, err := limiter.New(limiter.NewMemory(limiter.MemoryConfig{}), "api", limiter.SlidingLog(5, time.Minute), limiter.TokenBucket(limit(t, "10/s", 3)))
	require.NoError(t, err)
	require.Equal(t, "api: sliding log 5/m, token bucket 10/s burst 3", l.String())
	require.Equal(t, "api", l.Name())
	require.Len(t, l.Rules(), 2)
	require.Equal(t, limiter.SlidingLogAlgorithm, l.Rules()[0].Algorithm())
	require.Equal(t, throttle.Limit{Rate: 5, Period: time.Minute, Burst: 5}, l.Rules()[0].Limit())
	require.Equal(t, "algorithm 9", limiter.Algorithm(9).String())
}
