package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestGuardsAreOfThoseThatFoundTheWindowFull(t *testing.T) {
	sliding := throttle.Quota{Limit: 2, Per: time.Second}
	fixed := throttle.Quota{Limit: 100, Per: 20 * time.Second}
	start := alignedStart(noon, fixed.Per)
	left := append(every(start, 100*time.Millisecond, 2), // they use it up
		one(start.Add(1200*time.Millisecond)),                                 // 200 ms after it is free
		one(start.Add(1500*time.Millisecond)),                                 // it was free when the one before left
		one(start.Add(2600*time.Millisecond)),                                 // 400 ms after it is free
		one(start.Add(2700*time.Millisecond)), one(start.Add(20*time.Second)), // the next fixed window
	)
	mean, longest := guards(left, sliding, fixed)
	require.Equal(t, 300*time.Millisecond, mean)
	require.Equal(t, 400*time.Millisecond, longest)

	mean, longest = guards(left[:2], sliding, fixed)
	require.Zero(t, mean)
	require.Zero(t, longest)
}
