package throttle

import "math"

// Within a run the rate counts as constant: on a ramp a run is no longer than one of so
// many parts of it, nor than it takes the rate to grow by one of so many parts of what it is.
const rampParts, rateParts = 512, 64

// A meter is a bucket in a forecast. Its arithmetic is that of bucket.lua.
type meter struct {
	rate, burst float64 // cost per µs, cost
	level       float64 // at the instant
	at          float64
	turn        float64 // the part of a job's cost that it waits for its siblings first

	// The ramp: the fraction of the rate that it begins with, when it does, and how long
	// it takes. 0 for none.
	fraction, begins, over float64
}

func newMeter(s stage, now int64) meter {
	l := s.policy.Limit
	m := meter{
		rate:  s.share * float64(l.Rate) / float64(l.Period.Microseconds()),
		burst: s.share * float64(l.Burst),
		level: s.share * (s.level + s.out),
		turn:  (1 - s.share) / 2,
	}
	if r := s.policy.Ramp; r != nil && s.ramped > 0 {
		m.fraction, m.begins, m.over = r.From, float64(s.ramped-now), float64(r.Over.Microseconds())
	}
	return m
}

// worth is how many µs at the full rate the time from one instant to another is.
func (m *meter) worth(from, to float64) float64 {
	if to <= m.begins || from >= m.begins+m.over {
		return to - from
	}
	before := max(0, m.begins-from)
	return before + m.area(to-m.begins) - m.area(max(0, from-m.begins))
}

// area is what worth is from the beginning of the ramp.
func (m *meter) area(d float64) float64 {
	within := min(d, m.over)
	return m.fraction*within + (1-m.fraction)*within*within/(2*m.over) + d - within
}

// after is the instant until which so many µs at the full rate have passed.
func (m *meter) after(from, need float64) float64 {
	if from+need <= m.begins || from >= m.begins+m.over {
		return from + need
	}
	want := need - max(0, m.begins-from) + m.area(max(0, from-m.begins))
	if full := m.over * (1 + m.fraction) / 2; want >= full {
		return m.begins + m.over + want - full
	}
	a := (1 - m.fraction) / (2 * m.over)
	return m.begins + (math.Sqrt(m.fraction*m.fraction+4*a*want)-m.fraction)/(2*a)
}

// levelAt is what is in the bucket at an instant from its own on.
func (m *meter) levelAt(at float64) float64 {
	return max(0, m.level-m.worth(m.at, at)*m.rate)
}

// earliest is when a job may leave. One that is dearer than the burst leaves when the
// bucket is empty.
func (m *meter) earliest(cost float64) float64 {
	over := m.level - max(0, m.burst-cost)
	if over <= 0 {
		return m.at
	}
	return m.after(m.at, over/m.rate)
}

// room is the cost that may leave at an instant besides one job of that cost.
func (m *meter) room(at, cost float64) float64 {
	return max(0, m.burst-cost) - m.levelAt(at)
}

// distance is how far the next job is from one that leaves at an instant: 0 where
// there is room for it.
func (m *meter) distance(at, cost float64) float64 {
	if m.room(at, cost) > 1e-9+m.rate*slack(at) {
		return 0
	}
	n := m.together(at, cost)
	if n == most {
		return cost / m.rate
	}
	return (m.after(at, float64(n)*cost/m.rate) - at) / float64(n)
}

// together is how many jobs from an instant on the rate may count as constant for.
func (m *meter) together(at, cost float64) int64 {
	switch {
	case at >= m.begins+m.over:
		return most
	case at < m.begins:
		return max(1, whole((m.begins-at)*m.rate/cost))
	}
	now := m.fraction + (1-m.fraction)*(at-m.begins)/m.over
	return max(1, whole(m.over*min(1./rampParts, now/rateParts)*now*m.rate/cost))
}

func (m *meter) most(r run) int64 {
	n := m.together(r.at, r.cost)
	if rise := r.cost - r.every*m.rate; n == most && rise > tooLittle*r.cost {
		return whole(max(0, m.room(r.at, r.cost))/rise) + 1
	}
	if n < most && m.distance(r.at, r.cost) == 0 {
		n = min(n, whole(m.room(r.at, r.cost)/r.cost)+1)
	}
	return n
}

func (m *meter) take(r run) {
	level := m.levelAt(r.at)
	m.at = r.last()
	// Where the jobs are further apart than the rate asks for, it may run empty between them.
	m.level = max(r.cost, level+float64(r.n)*r.cost-m.worth(r.at, m.at)*m.rate)
}
