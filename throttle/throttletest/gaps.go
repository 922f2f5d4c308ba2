package throttletest

import (
	"math"
	"slices"
	"time"

	"github.com/weirq/weir/throttle"
)

// gapErrors compares the gaps between successive events with those of the
// limit's own schedule from an idle start, and gives the absolute differences in
// rising order. Gaps that end inside the burst are left out: the limit says
// nothing about them.
func gapErrors(l throttle.Limit, events []Event) []time.Duration {
	var (
		errs     []time.Duration
		before   int64
		lastSlot float64
	)
	for i, e := range events {
		slot := leakTime(l, demand(l, before, e.Cost))
		if i > 0 && slot > 0 {
			gap := e.At.Sub(events[i-1].At)
			errs = append(errs, duration(math.Abs(float64(gap)-(slot-lastSlot))))
		}
		before, lastSlot = before+e.Cost, slot
	}
	slices.Sort(errs)
	return errs
}

// quantile is the nearest-rank quantile of sorted values; 0 when there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(0, rank-1)]
}
