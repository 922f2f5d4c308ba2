package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle/throttletest"
)

var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// every makes n events, one each gap.
func every(from time.Time, gap time.Duration, n int) (events []throttletest.Event) {
	for i := range n {
		events = append(events, throttletest.Event{Key: "k", At: from.Add(time.Duration(i) * gap)})
	}
	return events
}

func one(at time.Time) throttletest.Event { return throttletest.Event{Key: "k", At: at} }

func TestMostFindsAPlantedEvent(t *testing.T) {
	steady := every(noon, 100*time.Millisecond, 200)
	require.EqualValues(t, 50, most(steady, 5*time.Second), "a window does not hold both of its ends")
	require.EqualValues(t, 51, most(append(steady, one(noon.Add(7*time.Second+time.Microsecond))), 5*time.Second))

	dear := append(slices.Clone(steady), throttletest.Event{Key: "k", At: noon.Add(time.Hour), Cost: 52})
	require.EqualValues(t, 52, most(dear, 5*time.Second), "by cost, not by number")
	require.Zero(t, most(nil, time.Second))
}

func TestSpanFindsAPlantedExcessAndAPlantedGap(t *testing.T) {
	to := noon.Add(20 * time.Second)
	steady := every(noon, 100*time.Millisecond, 201)
	s := spanOf(steady, 10*time.Second, noon, to, 100, 100)
	require.Equal(t, span{fewest: 100, most: 100}, s)

	excess := append(slices.Clone(steady), one(noon.Add(11050*time.Millisecond)))
	s = spanOf(excess, 10*time.Second, noon, to, 0, 100)
	require.EqualValues(t, 101, s.most)
	require.Equal(t, noon.Add(10*time.Second), s.outside, "the last window that holds it")
	require.EqualValues(t, 100, spanOf(excess, 10*time.Second, noon, noon.Add(11*time.Second), 0, 100).most, "it lies after all of these")

	gap := append(every(noon, 100*time.Millisecond, 100), every(noon.Add(10100*time.Millisecond), 100*time.Millisecond, 100)...)
	s = spanOf(gap, 10*time.Second, noon, to, 100, math.MaxInt64)
	require.EqualValues(t, 99, s.fewest)
	require.Equal(t, noon.Add(9900*time.Millisecond), s.outside, "the last window that lacks one")

	s = spanOf(nil, 10*time.Second, noon, to, 1, 1)
	require.EqualValues(t, 0, s.fewest, "nothing came")
	require.Equal(t, noon, s.outside)
}

// A change that comes late is as late as the last window that it made wrong.
func TestSpanTellsWhenAChangeCame(t *testing.T) {
	changed := noon.Add(10 * time.Second)
	slow := every(noon, 100*time.Millisecond, 130) // 3 s too long
	fast := every(noon.Add(13*time.Second), 10*time.Millisecond, 1500)
	s := spanOf(append(slow, fast...), 10*time.Second, changed, noon.Add(27*time.Second), 995, 1005)
	require.InDelta(t, 3, s.outside.Sub(changed).Seconds(), 0.1)
}

func TestSpanAgreesWithALookAtEveryInstant(t *testing.T) {
	const step = 10 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		ticks := rapid.SliceOfN(rapid.IntRange(0, 100), 0, 40).Draw(t, "ticks")
		per := rapid.IntRange(1, 60).Draw(t, "per")
		var events []throttletest.Event
		for _, n := range ticks {
			events = append(events, throttletest.Event{
				Key: "k", At: noon.Add(time.Duration(n) * step), Cost: rapid.Int64Range(0, 3).Draw(t, "cost"),
			})
		}
		fewest, highest := int64(math.MaxInt64), int64(0)
		for start := 0; start+per <= 100; start++ {
			var cost int64
			for i, n := range ticks {
				if n > start && n <= start+per {
					cost += max(1, events[i].Cost)
				}
			}
			fewest, highest = min(fewest, cost), max(highest, cost)
		}
		s := spanOf(events, time.Duration(per)*step, noon, noon.Add(100*step), 0, math.MaxInt64)
		require.Equal(t, span{fewest: fewest, most: highest}, s)
	})
}

func TestAlignedCountsBothSidesOfAnEdge(t *testing.T) {
	edge := alignedStart(noon.Add(time.Minute), 20*time.Second)
	events := append(every(edge.Add(-3*time.Microsecond), time.Microsecond, 3), every(edge, time.Microsecond, 5)...)
	require.Equal(t, map[time.Time]int64{edge.Add(-20 * time.Second): 3, edge: 5}, aligned(events, 20*time.Second))
	require.Zero(t, edge.Unix()%20)
	require.EqualValues(t, 8, most(events, 20*time.Second), "which a sliding window counts together")
}

// Bursts of 50 twice a second are 100/s, wherever a run begins and ends.
func TestPaceHardlyDependsOnWhereACycleIsCut(t *testing.T) {
	var bursts []throttletest.Event
	for i := range 60 {
		for _, e := range every(noon.Add(time.Duration(i)*500*time.Millisecond), 10*time.Millisecond, 10) {
			e.Cost = 5
			bursts = append(bursts, e)
		}
	}
	for cut := range 20 {
		from := noon.Add(time.Duration(cut) * 25 * time.Millisecond)
		for length := range 20 {
			to := from.Add(20*time.Second + time.Duration(length)*25*time.Millisecond)
			require.InDelta(t, 100, pace(between(bursts, from, to)), 0.3)
		}
	}
	require.InDelta(t, 102, pace(every(noon, time.Second/102, 2000)), 1e-3, "2 % too fast")
	require.InDelta(t, 98, pace(every(noon, time.Second/98, 2000)), 1e-3, "2 % too slow")
	require.Zero(t, pace(every(noon, 0, 5)))
	require.Zero(t, pace(nil))
}
