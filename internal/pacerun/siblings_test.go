package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

func TestSharesFindAChildThatHasTooMuch(t *testing.T) {
	weights := map[string]int{"a": 1, "b": 2, "c": 4}
	var events []throttletest.Event
	had := func(key string, n int) {
		for range n {
			events = append(events, throttletest.Event{Key: key, At: noon.Add(time.Duration(len(events)))})
		}
	}
	had("a", 100)
	had("b", 200)
	had("c", 400)
	had("ran out", 50)
	lowest, highest := shares(events, weights)
	require.InDelta(t, 1, lowest, 1e-9)
	require.InDelta(t, 1, highest, 1e-9)

	had("a", 10)
	lowest, highest = shares(events, weights)
	require.InDelta(t, 110.0/100*700/710, highest, 1e-9)
	require.InDelta(t, 700.0/710, lowest, 1e-9)

	weights["none"] = 1
	lowest, _ = shares(events, weights)
	require.Zero(t, lowest, "a child that got nothing")
}

func TestEventsUnderAParentAreCountedTogether(t *testing.T) {
	left := []throttletest.Event{{Key: "a", At: noon}, {Key: "b", At: noon}, {Key: "a", At: noon.Add(time.Second)}}
	all := under("p", left)
	reports, err := throttletest.Measure(limitsOf("p", "1/s", 1), all, nil)
	require.NoError(t, err)
	require.InDelta(t, 1, reports[0].Excess, 1e-6, "two at once from a burst of one")
	require.Equal(t, "a", left[0].Key, "the children's events are left as they were")
}
