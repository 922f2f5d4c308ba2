package throttletest

import (
	"math"
	"time"

	"github.com/weirq/weir/throttle"
)

// A Window is a closed span of time and all that was seen in it.
type Window struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Cost int64     `json:"cost"`
}

// worstWindow finds the closed window with the largest excess among all of
// them, in one pass over events in the order of time.
//
// A window from event i to event j, with P the cost before an event, exceeds by
// demand(P[j]-P[i], cost[j]) - leak(t[j]-t[i]), which splits into a part of j
// less the part P[i]-leak(t[i]) of i. So the best start for a given end is the
// one with the smallest such part so far. Costs are positive, hence the first
// event of an instant is the best start and the last one the best end: events of
// one instant count together without further ado.
func worstWindow(l throttle.Limit, events []Event) (excess float64, worst Window) {
	if len(events) == 0 {
		return 0, Window{}
	}
	var (
		origin = events[0].At
		before int64         // cost before the event
		least  = math.Inf(1) // smallest start part so far
		start  int           // the event it belongs to
		atMin  int64         // the cost before that event
		found  = math.Inf(-1)
	)
	for i, e := range events {
		leaked := leak(l, e.At.Sub(origin))
		if part := float64(before) - leaked; part < least {
			least, start, atMin = part, i, before
		}
		if x := float64(demand(l, before, e.Cost)) - leaked - least; x > found {
			found = x
			worst = Window{From: events[start].At, To: e.At, Cost: before + e.Cost - atMin}
		}
		before += e.Cost
	}
	return found, worst
}
