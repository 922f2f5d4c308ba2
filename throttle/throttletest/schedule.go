package throttletest

import (
	"math"
	"time"

	"github.com/weirq/weir/throttle"
)

// demand is the cost that must leak before a job may leave, when before cost
// units have left since the bucket was idle; negative while the burst lasts. A
// job dearer than the burst leaves from an empty bucket and puts it into debt,
// so it asks for no more room than the burst. Slots, ratio and excess all follow
// from this one rule.
func demand(l throttle.Limit, before, cost int64) int64 {
	return before + min(cost, l.Burst) - l.Burst
}

// leak is the cost that leaks in d.
func leak(l throttle.Limit, d time.Duration) float64 {
	return float64(d) * float64(l.Rate) / float64(l.Period)
}

// leakTime is how long cost takes to leak, in nanoseconds; 0 for what is not
// above 0. It is a float because a large cost at a low rate takes longer than a
// time.Duration can hold.
func leakTime(l throttle.Limit, cost int64) float64 {
	return float64(max(0, cost)) * float64(l.Period) / float64(l.Rate)
}

func duration(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(ns))
}

// perSecond is the configured rate in cost units per second.
func perSecond(l throttle.Limit) float64 { return leak(l, time.Second) }
