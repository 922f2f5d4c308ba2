package limiter

// leakyBucket: instant, and parts, is when the bucket will be empty: the theoretical arrival
// time of the generic cell rate algorithm.
type leakyBucket struct {
	*terms
	state
}

func (m *leakyBucket) move(now int64) (moved bool) {
	if m.parts >= m.rate { // of another rate
		m.instant, m.parts = m.instant+1, 0
	}
	switch {
	case m.written > now:
		m.instant -= m.written - now
		m.written, moved = now, true
	case m.written == 0 && m.full(now):
		m.instant, m.parts, moved = now+m.fill, m.fillParts, true
	}
	if m.instant < now {
		m.instant, m.parts = now, 0
	}
	return moved
}

// full tells whether more is in the bucket than it holds: that was reserved, or the clock
// stepped back, or the burst was lowered.
func (m *leakyBucket) full(now int64) bool {
	us, parts := m.instant-now-m.fill, m.parts-m.fillParts
	return us > 0 || us == 0 && parts > 0
}

// slot is when there is room; for a reservation of a queue it is when all before it have left.
func (m *leakyBucket) slot(now int64, q question) int64 {
	if q.reserves && m.algorithm == LeakyQueueAlgorithm {
		return max(now, up(m.instant, m.parts))
	}
	us, parts := m.after(m.instant, m.parts, q.cost)
	us, parts = us-m.fill, parts-m.fillParts
	return max(now, up(us, parts))
}

// leave is the slot, of a meter. In a queue what is charged leaves when the bucket has run
// empty of what was there before.
func (m *leakyBucket) leave(slot, cost int64) int64 {
	if m.algorithm != LeakyQueueAlgorithm {
		return slot
	}
	us, parts := m.span(cost)
	return max(slot, up(m.instant-us, m.parts-parts))
}

func (m *leakyBucket) charge(now, slot, cost int64) {
	if m.instant < slot && (m.algorithm != LeakyQueueAlgorithm || up(m.instant, m.parts) < slot) {
		m.instant, m.parts = slot, 0
	}
	m.instant, m.parts = m.after(m.instant, m.parts, cost)
	m.reserve(now, slot)
}

func (m *leakyBucket) giveBack(int64, int64) bool { return false } // others have got the room that comes next

func (m *leakyBucket) remaining(now int64) int64 {
	us, parts := m.fill-(m.instant-now), m.fillParts-m.parts
	if parts < 0 {
		us, parts = us-1, parts+m.rate
	}
	if us < 0 {
		return 0
	}
	return m.cost(us, parts)
}

func (m *leakyBucket) fresh() int64 { return up(m.instant, m.parts) }
