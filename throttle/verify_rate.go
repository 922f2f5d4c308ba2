package throttle

import "time"

// A span is a leaky bucket with its window: what has left since it was last found empty,
// and what leaked meanwhile. The level is the excess of that window over rate×time.
type span struct {
	level  float64
	from   time.Time // the departure that found it empty
	cost   float64   // departed since then
	leaked float64   // could have leaked since then
}

func (s *span) leak(amount float64) {
	s.level = max(0, s.level-amount)
	s.leaked += amount
}

// begin starts a new window at a departure that finds the bucket empty.
func (s *span) begin(at time.Time, tolerance float64) {
	if s.level <= tolerance {
		s.from, s.cost, s.leaked = at, s.level, 0
	}
}

func (s *span) add(cost float64) {
	s.level += cost
	s.cost += cost
}

// A rateCheck replays the leaky bucket of a key. It judges by a bucket without what left
// too early, and keeps another one with it, for the window in which it did.
type rateCheck struct {
	limit     Limit
	tolerance float64
	at        int64 // of both buckets, in the scale of places
	judged    span
	seen      span
	late      []lateCharge // those in the buckets that some who have a slot need not make room for
	spared    float64      // the sum of them

	current *Violation // the one that seen tells of
	since   float64    // what has leaked since the last departure that left too early

	any      bool    // whether anything departed since the policy is known
	departed int64   // the place of the last departure
	early    bool    // whether it left too early
	started  bool    // whether anything was judged at all
	total    float64 // what could leak since the first departure that was judged
	allowed  float64 // the bound of the window from that one to the last

	busy, asked float64 // µs, see Verification.Busy
}

// forget begins anew, as nothing is known of a time.
func (r *rateCheck) forget() {
	r.limit, r.judged, r.seen, r.current, r.any = Limit{}, span{}, span{}, nil, false
	r.late, r.spared = nil, 0
}

// change puts another limit in force. The new policy may have been known for some time
// when a bucket takes it over, at its next departure: the faster rate counts for that.
func (r *rateCheck) change(l Limit, p place) {
	if r.limit == (Limit{}) {
		r.at = p.after
	}
	old := r.limit
	if old != (Limit{}) {
		faster := old
		if l.rate().above(old.rate()) {
			faster = l
		}
		// Up to r.at the old rate has leaked already.
		from := min(p.own, r.departed)
		if !r.any {
			from = p.own
		}
		more := faster.leaked(r.at-from) - old.leaked(r.at-from)
		r.leak(faster.leaked(max(0, p.after-r.at)) + max(0, more))
	}
	r.at = max(r.at, p.after)
	r.limit, r.tolerance = l, l.tolerance()
}

// move lets the buckets leak until an instant.
func (r *rateCheck) move(at int64) {
	r.leak(r.limit.leaked(max(0, at-r.at)))
	r.at = max(r.at, at)
}

func (r *rateCheck) leak(amount float64) {
	r.judged.leak(amount)
	r.seen.leak(amount)
	r.since += amount
	if r.started {
		r.total += amount
	}
	// What leaves too early after all has leaked that made the last excess, and a burst, is
	// another one.
	if r.current == nil || r.since >= float64(r.limit.Burst)+r.seen.level-r.judged.level {
		r.current, r.seen = nil, r.judged
	}
}

func (r *rateCheck) depart(c *check, d *Departure) {
	where, cost, burst := d.place.or(d.At), float64(d.Cost), float64(r.limit.Burst)
	at := where.own
	need := min(cost, burst) // a dearer job leaves when the bucket is empty
	r.spare(where)
	if r.any && !d.Forced {
		r.measure(at, cost, burst-need)
	}
	r.move(at)
	r.judged.begin(d.At, r.tolerance)
	r.seen.begin(d.At, r.tolerance)
	r.departed, r.any, r.started = at, true, true
	r.allowed = burst + r.total

	r.early = !d.Forced && r.judged.level-r.spared+need > burst+r.tolerance
	r.seen.add(cost)
	if r.early {
		if r.current == nil {
			r.current = c.violation("rate")
		}
		r.since = 0
	} else {
		r.judged.add(cost)
	}
	if d.Forced {
		r.addLate(lateCharge{where.beyond(), d.At, cost})
	}
	if r.current == nil || d.Forced {
		return
	}
	allowed := burst + r.seen.leaked + cost - need
	r.current.widen(r.seen.from, d.At, r.seen.cost, allowed, r.tolerance, c.policy)
	if r.early {
		r.current.note(d)
	}
}

// measure adds up the time of departures that had to wait for the bucket and left about
// as soon as it allowed. below is the level at which they may.
func (r *rateCheck) measure(at int64, cost, below float64) {
	perUnit := float64(r.limit.Period.Microseconds()) / float64(r.limit.Rate)
	took := float64(at - r.departed)
	late := float64(at-r.at) - (r.judged.level-r.spared-below)*perUnit
	late = min(max(0, late), took)
	if took-late > toleranceTime && late <= cost*perUnit+toleranceTime {
		r.busy += took
		r.asked += took - late
	}
}

func (r *rateCheck) settle(s *Settlement) {
	where := s.place.or(s.At)
	r.move(where.own)
	r.judged.begin(s.At, r.tolerance)
	r.seen.begin(s.At, r.tolerance)
	r.judged.add(float64(s.Off))
	r.seen.add(float64(s.Off))
	r.addLate(lateCharge{where.beyond(), s.At, float64(s.Off)})
}

func (r *rateCheck) addLate(l lateCharge) {
	r.late = append(r.late, l)
	r.spared += l.cost
}

// spare finds out what a departure need not make room for: what came when its slot had been
// given out.
func (r *rateCheck) spare(d place) {
	for len(r.late) > 0 && r.late[0].place.compare(d) < 0 {
		r.spared -= r.late[0].cost
		r.late = r.late[1:]
	}
	if len(r.late) == 0 {
		r.spared = 0
	}
}
