package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/limiter"
)

// Keys that count as none make room: what is held is in proportion to those that do not.
func TestMemoryForgetsIdleKeys(t *testing.T) {
	for _, rule := range eachRule(10, time.Second) {
		t.Run(rule.Algorithm().String(), func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			store := limiter.NewMemory(limiter.MemoryConfig{Now: func() time.Time { return now }})
			l, err := limiter.New(store, "test", rule)
			require.NoError(t, err)
			for i := range 200_000 {
				now = now.Add(time.Millisecond) // so at most 2000 keys count at a time
				require.True(t, allow(t, l, fmt.Sprint(i)).Allowed)
			}
			require.LessOrEqual(t, limiter.MemoryKeys(l), 3*2000+64*16)
		})
	}
}

func TestMemoryDecidesWithoutAllocations(t *testing.T) {
	ctx := context.Background()
	for _, rule := range eachRule(1000, time.Second) {
		l, err := limiter.New(limiter.NewMemory(limiter.MemoryConfig{}), "test", rule)
		require.NoError(t, err)
		for range 2000 { // a log grows until it is full
			allow(t, l, "key")
		}
		require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = l.AllowN(ctx, "key", 1) }), "%v", rule)
	}
}

// The clock of a store in memory runs from the start of the store: one of the system that steps meanwhile
// does not matter, and its windows are those of everybody else.
func TestMemoryHasTheTimeOfDay(t *testing.T) {
	l, err := limiter.New(limiter.NewMemory(limiter.MemoryConfig{}), "test", limiter.FixedWindow(1, time.Hour))
	require.NoError(t, err)
	before := time.Now()
	r := allow(t, l, "k")
	edge := before.Truncate(time.Hour).Add(time.Hour)
	require.WithinDuration(t, edge, before.Add(r.ResetAfter), time.Second)
}

// The state is kept for a name, whichever limiter asks.
func TestLimitersOfOneNameShareTheirState(t *testing.T) {
	store := limiter.NewMemory(limiter.MemoryConfig{})
	one, err := limiter.New(store, "shared", limiter.FixedWindow(2, time.Hour))
	require.NoError(t, err)
	two, err := limiter.New(store, "shared", limiter.FixedWindow(3, time.Hour))
	require.NoError(t, err)
	other, err := limiter.New(store, "other", limiter.FixedWindow(2, time.Hour))
	require.NoError(t, err)
	require.True(t, allow(t, one, "k").Allowed)
	require.True(t, allow(t, one, "k").Allowed)
	require.True(t, allow(t, two, "k").Allowed)
	require.False(t, allow(t, two, "k").Allowed)
	require.False(t, allow(t, one, "k").Allowed)
	require.True(t, allow(t, other, "k").Allowed)
}
