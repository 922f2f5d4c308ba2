package main

import (
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/weirq/weir/throttle/throttletest"
)

// windows gives, in no order, start and cost of those windows of length per, of all
// that lie between two instants, that can have the highest or the lowest cost. A
// window does not hold its start and holds its end, so as it moves its cost changes
// only where its start leaves an event behind or its end takes one in.
func windows(events []throttletest.Event, per time.Duration, from, to time.Time) iter.Seq2[time.Time, int64] {
	events = inTime(events)
	before := make([]int64, 1, len(events)+1) // cost of the first n events
	for _, e := range events {
		before = append(before, before[len(before)-1]+max(1, e.Cost))
	}
	upTo := func(at time.Time) int64 { // cost up to and with an instant
		return before[sort.Search(len(events), func(i int) bool { return events[i].At.After(at) })]
	}
	last := to.Add(-per)
	return func(yield func(time.Time, int64) bool) {
		visit := func(start time.Time) bool {
			if start.Before(from) || start.After(last) {
				return true
			}
			return yield(start, upTo(start.Add(per))-upTo(start))
		}
		if !visit(from) {
			return
		}
		for _, e := range events {
			if !visit(e.At) || !visit(e.At.Add(-per)) {
				return
			}
		}
	}
}

// most is the highest cost in a window of length per, wherever it lies.
func most(events []throttletest.Event, per time.Duration) (cost int64) {
	if len(events) == 0 {
		return 0
	}
	sorted := inTime(events)
	from, to := sorted[0].At.Add(-per), sorted[len(sorted)-1].At.Add(per)
	for _, c := range windows(sorted, per, from, to) {
		cost = max(cost, c)
	}
	return cost
}

// span is what windows of one length held at least and at most.
type span struct {
	fewest, most int64
	// outside is the last start of a window that held less than low or more than
	// high; zero if none did.
	outside time.Time
}

// spanOf looks at all windows of length per between two instants, of which there
// must be one.
func spanOf(events []throttletest.Event, per time.Duration, from, to time.Time, low, high int64) span {
	s := span{fewest: math.MaxInt64}
	for start, cost := range windows(events, per, from, to) {
		s.fewest, s.most = min(s.fewest, cost), max(s.most, cost)
		if (cost < low || cost > high) && start.After(s.outside) {
			s.outside = start
		}
	}
	return s
}

// aligned adds up the cost in each window of those that follow each other at the
// multiples of per since 1970 UTC, by the window's start.
func aligned(events []throttletest.Event, per time.Duration) map[time.Time]int64 {
	costs := make(map[time.Time]int64)
	for _, e := range events {
		costs[alignedStart(e.At, per)] += max(1, e.Cost)
	}
	return costs
}

// alignedStart is the start of the aligned window that holds an instant.
func alignedStart(at time.Time, per time.Duration) time.Time {
	return time.UnixMicro(at.UnixMicro() / per.Microseconds() * per.Microseconds()).UTC()
}

// pace is the rate per second of the straight line that fits the cost seen so far
// best, each event counted half at its instant and half after it. Unlike the cost
// between the first event and the last, it hardly depends on where in a cycle of
// bursts a run begins and ends.
func pace(events []throttletest.Event) float64 {
	events = inTime(events)
	if len(events) < 2 {
		return 0
	}
	var seen, meanT, meanC float64
	t, c := make([]float64, len(events)), make([]float64, len(events))
	for i, e := range events {
		cost := float64(max(1, e.Cost))
		t[i], c[i] = e.At.Sub(events[0].At).Seconds(), seen+cost/2
		seen += cost
		meanT += t[i] / float64(len(events))
		meanC += c[i] / float64(len(events))
	}
	var above, below float64
	for i := range events {
		above += (t[i] - meanT) * (c[i] - meanC)
		below += (t[i] - meanT) * (t[i] - meanT)
	}
	if below == 0 {
		return 0
	}
	return above / below
}

// between are the events from one instant to before another.
func between(events []throttletest.Event, from, to time.Time) (within []throttletest.Event) {
	for _, e := range events {
		if !e.At.Before(from) && e.At.Before(to) {
			within = append(within, e)
		}
	}
	return within
}

func costOf(events []throttletest.Event) (cost int64) {
	for _, e := range events {
		cost += max(1, e.Cost)
	}
	return cost
}

// inTime sorts a copy by instant.
func inTime(events []throttletest.Event) []throttletest.Event {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b throttletest.Event) int { return a.At.Compare(b.At) })
	return sorted
}
