package throttle

import (
	"iter"
	"time"
)

// each tells of all that a history has, in the order of time.
func (h History) each(change func(*PolicyChange), depart func(*Departure), settle func(*Settlement)) {
	policies, departures, settlements := h.Policies, h.Departures, h.Settlements
	for {
		// The first of the three lists' firsts.
		var first place
		from := 0
		sooner := func(p place, list int) {
			if from == 0 || p.compare(first) < 0 {
				first, from = p, list
			}
		}
		if len(policies) > 0 {
			sooner(policies[0].place.or(policies[0].At), 1)
		}
		if len(departures) > 0 {
			sooner(departures[0].place.or(departures[0].At), 2)
		}
		if len(settlements) > 0 {
			sooner(settlements[0].place.or(settlements[0].At), 3)
		}
		switch from {
		case 1:
			change(&policies[0])
			policies = policies[1:]
		case 2:
			depart(&departures[0])
			departures = departures[1:]
		case 3:
			settle(&settlements[0])
			settlements = settlements[1:]
		default:
			return
		}
	}
}

// A Step is a departure or a settlement with the bucket around it.
type Step struct {
	Departure *Departure // nil for a settlement
	At        time.Time
	Since     time.Duration // since the first departure; it does not step back where the clock did
	Cost      float64       // all that has left, this included
	Allowed   float64       // the most that may have: burst + rate×time
	Before    float64       // cost in the bucket
	After     float64
	Limit     Limit // in force
	Early     bool  // it left too early: After has all that did, and the steps to come are as if none had
}

// Steps replays a history through the leaky bucket by which [History.Verify] judges it.
// It begins with the first departure whose policy is known, and leaves out others whose
// policy is not.
func (h History) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		c := check{}
		begun, first, more := false, int64(0), true
		step := func(s Step, judged bool, cost int64, at place) {
			begins := !begun && s.Departure != nil
			if !judged || !more || !begun && !begins {
				return
			}
			if begins {
				begun, first = true, at.at
			}
			s.Since = time.Duration(at.at-first) * time.Microsecond
			s.Limit = c.now().policy.Limit
			s.Cost, s.Allowed = c.v.Cost, float64(s.Limit.Burst)+c.rate.total
			s.After = c.rate.judged.level
			if s.Early {
				s.After = c.rate.seen.level
			}
			s.Before = max(0, s.After-float64(cost))
			more = yield(s)
		}
		h.each(c.change, func(d *Departure) {
			judged := c.depart(d)
			step(Step{Departure: d, At: d.At, Early: c.rate.early}, judged, d.Cost, d.place.or(d.At))
		}, func(s *Settlement) {
			judged := c.settle(s)
			step(Step{At: s.At}, judged, s.Off, s.place.or(s.At))
		})
	}
}
