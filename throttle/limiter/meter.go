package limiter

import "slices"

// A meter is what one key has used of one rule. Its arithmetic is that of the script of
// the same algorithm, and [memory] keeps meters as they are, so both stores decide alike; what
// a script replies is made a meter again to tell what remains.
//
// Instants are µs since 1970. What is allowed for later is charged at once, at its slot;
// nothing that asks afterwards gets an earlier one in a window.
type meter interface {
	// move brings the meter to now. Where the clock stepped back, what was reserved
	// ahead moves back with it, and nothing else waits longer than from afresh. It tells
	// whether it did so, or a lowered burst had more in it: that has to be kept even if nothing is charged,
	// or it would be done anew each time.
	move(now int64) (moved bool)
	// slot is the earliest instant from now on at which a cost may be charged. The
	// cost is within the burst, or the limit of the window.
	slot(now int64, q question) int64
	charge(now, slot, cost int64)
	// leave is when what was charged last, at a slot, may go: only a queue has it wait.
	leave(slot, cost int64) int64
	// giveBack takes a charge back that others came after, as far as none of them is too
	// early without it.
	giveBack(slot, cost int64) (given bool)
	// remaining is how much cost may be charged now.
	remaining(now int64) int64
	// fresh is the instant from which the meter is as if it had never been charged.
	fresh() int64
	// kind is the algorithm whose state this is.
	kind() Algorithm
	// most is the limit: how much cost a fresh meter lets pass at once.
	most() int64
	// current is the state, which the entries of a log come beside.
	current() *state
	// restore puts back what there was before, if what there is now came right after it
	// and can be put back at all.
	restore(before, after state) bool
}

// A state is what is stored of a meter, in the terms of its algorithm.
type state struct {
	instant int64 // that counts were true at, or the start of a window
	parts   int64 // fraction of a µs to add to it, in parts of the reduced rate
	count   int64
	before  int64 // count of the window before
	last    int64 // the latest slot, of a sliding counter
	written int64 // when a slot ahead was charged last, 0 if none was
}

func (s *state) current() *state { return s }

func (s *state) restore(before, after state) bool {
	same := *s == after
	if same {
		*s = before
	}
	return same
}

// back is by how much the clock is seen to have stepped back. What is reserved ahead is told
// from an instant that lies ahead because of that by being written down as such.
func (s *state) back(now int64) int64 {
	if s.written > 0 {
		return max(0, s.written-now)
	}
	return max(0, s.instant-now)
}

// reserve notes whether a slot lies ahead.
func (s *state) reserve(now, slot int64) {
	s.written = 0
	if slot > now {
		s.written = now
	}
}

// newMeter is a meter that was never charged.
func newMeter(t *terms) meter {
	switch t.algorithm {
	case FixedWindowAlgorithm:
		return &fixedWindow{terms: t}
	case SlidingLogAlgorithm:
		return &slidingLog{terms: t}
	case SlidingCounterAlgorithm:
		return &slidingCounter{terms: t}
	case TokenBucketAlgorithm:
		return &tokenBucket{terms: t, state: state{count: t.burst}}
	default:
		return &leakyBucket{terms: t}
	}
}

// terms are a rule's numbers as the meters and the scripts want them.
type terms struct {
	Rule
	rate, period    int64 // cost per µs as a reduced fraction
	burst           int64 // most cost at once: the limit of a window
	window          int64 // length of a window, µs
	fill, fillParts int64 // how long the whole burst takes to come back
}

// kind is the same for the two leaky buckets, whose state means the same.
func (t *terms) kind() Algorithm {
	if t.algorithm == LeakyQueueAlgorithm {
		return LeakyBucketAlgorithm
	}
	return t.algorithm
}

// most is the burst, or the limit of the window.
func (t *terms) most() int64 { return t.burst }

func newTerms(r Rule) *terms {
	t := &terms{Rule: r, burst: r.limit.Burst, window: r.limit.Period.Microseconds()}
	t.rate, t.period = r.reduced()
	t.fill, t.fillParts = t.span(t.burst)
	return t
}

// span is the time in which cost comes back: µs, and a fraction of one in parts of the rate.
func (t *terms) span(cost int64) (us, parts int64) {
	us, parts, _ = muldiv(cost, t.period, t.rate)
	return us, parts
}

// after is an instant, and a fraction of a µs, that lies a span in which cost comes back later.
func (t *terms) after(us, parts, cost int64) (sumUS, sumParts int64) {
	spanUS, spanParts := t.span(cost)
	us, parts = us+spanUS, parts+spanParts
	if parts >= t.rate {
		us, parts = us+1, parts-t.rate
	}
	return us, parts
}

// cost is how much comes back in a span from 0, rounded down.
func (t *terms) cost(us, parts int64) int64 {
	if us > t.fill || us == t.fill && parts >= t.fillParts {
		return t.burst
	}
	// (us + parts/rate) × rate/period: the numerator is a whole number.
	whole, rest, _ := muldiv(us, t.rate, t.period)
	return whole + (rest+parts)/t.period
}

// up is an instant rounded up to a whole µs.
func up(us, parts int64) int64 {
	if parts > 0 {
		us++
	}
	return us
}

// adopt has a meter go on from another one of its rule, whose limit may have changed.
func adopt(m, from meter) {
	if m.kind() != from.kind() {
		return
	}
	*m.current() = *from.current()
	if log, ok := m.(*slidingLog); ok {
		log.entries = slices.Clone(from.(*slidingLog).entries)
	}
}
