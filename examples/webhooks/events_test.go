package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestPayloads(t *testing.T) {
	require.Len(t, templates, len(limits))
	for _, d := range madeUp(limits, 10*time.Second) {
		seen := make(map[string]bool)
		kinds := make(map[string]bool)
		for _, e := range d.events {
			var payload struct {
				ID      string    `json:"id"`
				Type    string    `json:"type"`
				Created time.Time `json:"created"`
			}
			require.NoError(t, json.Unmarshal(e.body, &payload), "%s", e.body)
			require.Equal(t, e.id, payload.ID)
			require.False(t, payload.Created.IsZero())
			require.False(t, seen[e.id])
			seen[e.id], kinds[payload.Type] = true, true
		}
		require.Len(t, kinds, len(templates[d.key]))
	}
}

func TestAttempts(t *testing.T) {
	limit := throttle.Limit{Rate: 10, Period: time.Second, Burst: 2}
	for _, c := range []struct {
		events, attempts int
		duration         time.Duration
	}{
		{0, 0, 0}, {1, 2, 0}, {2, 3, 100 * time.Millisecond}, {10, 11, 900 * time.Millisecond}, {11, 13, 1100 * time.Millisecond},
	} {
		d := newDestination("k", limit)
		refused := 0
		for range c.events {
			d.add("id", nil)
		}
		for _, e := range d.events {
			if e.refusedOnce {
				refused++
			}
		}
		require.Equal(t, c.attempts, d.attempts(), c)
		require.Equal(t, c.attempts, len(d.events)+refused, c)
		require.InDelta(t, c.duration, d.duration(), 1, c)
	}
	slow := newDestination("k", throttle.Limit{Rate: 1, Period: throttle.MaxPeriod, Burst: 1})
	for range 1000 {
		slow.add("id", nil)
	}
	require.Equal(t, 365*24*time.Hour, slow.duration(), "it does not overflow")
}
