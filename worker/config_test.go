package worker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestZeroConfigIsReady(t *testing.T) {
	c := Config{}.withDefaults()
	require.NoError(t, c.validate())
	require.Equal(t, 500, c.Concurrency)
	require.Equal(t, map[string]int{throttle.DefaultPool: 1}, c.Pools)
	require.Equal(t, throttle.DefaultLead, c.Lead)
	require.Equal(t, 30*time.Second, c.Lease)
	require.Equal(t, 30*time.Second, c.Timeout)
	require.Equal(t, 10*time.Second, c.ShutdownTimeout)
	require.Equal(t, 10, c.Retry.MaxAttempts)
	require.NotNil(t, c.Logger)
}

func TestConfigBounds(t *testing.T) {
	for _, c := range []Config{
		{Concurrency: 1}, {Concurrency: 100_000}, {Lease: time.Second, Lead: 100 * time.Millisecond},
		{Pools: map[string]int{"a": 1, "b": 100}}, {Timeout: 1, ShutdownTimeout: 1},
	} {
		require.NoError(t, c.withDefaults().validate())
	}
	for _, c := range []struct {
		config Config
		want   []string // the field, the value and what is allowed
	}{
		{Config{Concurrency: -1}, []string{"concurrency -1", "1 to 100000"}},
		{Config{Concurrency: 100_001}, []string{"concurrency 100001", "1 to 100000"}},
		{Config{Pools: map[string]int{"": 1}}, []string{`pool ""`, "a name"}},
		{Config{Pools: map[string]int{"mail": 0}}, []string{`pool "mail" with priority 0`, "at least 1"}},
		{Config{Pools: map[string]int{"mail": -3}}, []string{`pool "mail" with priority -3`, "at least 1"}},
		{Config{Lease: 999 * time.Millisecond}, []string{"lease 999ms", "at least 1s"}},
		{Config{Lease: -time.Second}, []string{"lease -1s", "at least 1s"}},
		{Config{Lease: time.Second, Lead: 200 * time.Millisecond}, []string{"lease 1s", "ten times the lead of 200ms"}},
		{Config{Timeout: -time.Second}, []string{"timeout -1s", "positive"}},
		{Config{ShutdownTimeout: -time.Second}, []string{"shutdown timeout -1s", "positive"}},
		{Config{Retry: RetryPolicy{MaxAttempts: -1}}, []string{"max attempts -1", "at least 1"}},
	} {
		err := c.config.withDefaults().validate()
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
}
