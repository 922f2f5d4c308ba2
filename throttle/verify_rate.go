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

// leak lets an amount leak, and tells how much of it there was not in the bucket.
func (s *span) leak(amount float64) (unused float64) {
	unused = max(0, amount-s.level)
	s.level = max(0, s.level-amount)
	s.leaked += amount
	return unused
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
	limit  Limit // in force
	at     int64 // of both buckets, in the scale of places
	judged span
	seen   span
	unused float64 // of the leak so far
	// Slots are rounded, by at most this cost: the limit in force and those before it may
	// have left their rounding in the bucket since it was last empty.
	tolerance float64

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
	r.limit, r.tolerance, r.judged, r.seen, r.current, r.any = Limit{}, 0, span{}, span{}, nil, false
}

// change puts another limit in force. The new policy may have been known for some time
// when a bucket takes it over, at its next departure: the faster rate counts for that.
func (r *rateCheck) change(book *rulebook) {
	l, at := book.policy.Limit, book.place.at
	if r.limit != (Limit{}) {
		old, faster := r.limit, r.limit
		if l.rate().above(old.rate()) {
			faster = l
		}
		if r.any {
			r.leak(faster.leaked(r.at-r.departed) - old.leaked(r.at-r.departed))
		}
		r.leak(faster.leaked(max(0, at-r.at)))
	}
	r.at, r.limit = max(r.at, at), l
	r.tolerance = max(r.tolerance, l.tolerance())
	book.leaked, book.unused = r.total, r.unused
}

// move lets the buckets leak until an instant.
func (r *rateCheck) move(at int64) {
	r.leak(r.limit.leaked(max(0, at-r.at)))
	r.at = max(r.at, at)
}

func (r *rateCheck) leak(amount float64) {
	if unused := r.judged.leak(amount); unused > 0 {
		r.unused += unused
		r.tolerance = r.limit.tolerance()
	}
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

// depart judges a departure by the policy under which its slot was given out. If another
// one is in force by now, with a lower rate, it need not know that. What is spared is in the
// bucket, but came when the slot had been given out.
func (r *rateCheck) depart(c *check, d *Departure, book, next *rulebook, spared float64) {
	limit, where, cost := book.policy.Limit, d.place.or(d.At), float64(d.Cost)
	burst, tolerance := float64(limit.Burst), max(r.tolerance, limit.tolerance())
	need := min(cost, burst) // a dearer job leaves when the bucket is empty
	if r.any && !d.Forced {
		r.measure(where.at, cost, burst-need+spared)
	}
	r.move(where.at)
	more := 0.0
	if next != nil {
		more = max(0, limit.leaked(where.at-next.place.at)-(r.total-next.leaked))
	}
	r.judged.begin(d.At, tolerance)
	r.seen.begin(d.At, tolerance)
	r.departed, r.any, r.started = where.at, true, true
	r.allowed = burst + r.total

	r.early = !d.Forced && r.judged.level+need > burst+more+spared+tolerance
	r.seen.add(cost)
	if r.early {
		if r.current == nil {
			r.current = c.violation("rate")
		}
		r.since = 0
	} else {
		r.judged.add(cost)
	}
	if next != nil && !r.early {
		r.leakAhead(min(cost, r.unused-next.unused))
	}
	if r.current == nil || d.Forced {
		return
	}
	allowed := burst + r.seen.leaked + more + spared + cost - need
	r.current.widen(r.seen.from, d.At, r.seen.cost, allowed, tolerance, book.policy)
	if r.early {
		r.current.note(d)
	}
}

// leakAhead credits a departure whose slot was given out before the limit in force was. Its
// charge was in the bucket by then, and has leaked ahead of the slot as far as there was
// nothing else to leak.
func (r *rateCheck) leakAhead(amount float64) {
	amount = max(0, amount)
	r.unused -= amount
	r.judged.leak(amount)
	r.seen.leak(amount)
}

// measure adds up the time of departures that had to wait for the bucket and left about
// as soon as it allowed. below is the level at which they may.
func (r *rateCheck) measure(at int64, cost, below float64) {
	perUnit := float64(r.limit.Period.Microseconds()) / float64(r.limit.Rate)
	took := float64(at - r.departed)
	late := float64(at-r.at) - (r.judged.level-below)*perUnit
	late = min(max(0, late), took)
	if took-late > toleranceTime && late <= cost*perUnit+toleranceTime {
		r.busy += took
		r.asked += took - late
	}
}

// settle charges what a run cost more. Nobody waited for it.
func (r *rateCheck) settle(s *Settlement) {
	r.move(s.place.or(s.At).at)
	r.judged.begin(s.At, r.tolerance)
	r.seen.begin(s.At, r.tolerance)
	r.judged.add(float64(s.Off))
	r.seen.add(float64(s.Off))
}
