package limiter

// slidingCounter: instant is the start of the window that count was charged in, before the
// count of the window before it. The latter counts in proportion to how much of it the
// window that ends now still covers.
type slidingCounter struct {
	*terms
	state
}

func (m *slidingCounter) move(now int64) (moved bool) {
	back := m.back(now)
	if back > 0 {
		// What was charged in a window that is now to come counts as that of the
		// last one: it is gone within a window.
		m.before, m.count = min(m.burst, max(m.before, m.count)), 0
		m.last -= back
		m.instant = now
		if m.written > 0 {
			m.instant = max(now, m.last)
		}
	}
	m.written = min(m.written, now)
	m.instant -= m.instant % m.window // it may have had another length
	m.roll(max(m.instant, now))
	return back > 0
}

// roll begins the window of an instant, if it is another one.
func (m *slidingCounter) roll(at int64) {
	start := at - at%m.window
	switch {
	case m.instant+2*m.window <= start:
		m.before, m.count = 0, 0
	case m.instant+m.window <= start:
		m.before, m.count = m.count, 0
	}
	m.instant = start
}

func (m *slidingCounter) slot(now int64, q question) int64 {
	from := now
	if m.written > 0 {
		from = max(now, m.last)
	}
	if free := m.burst - m.count - q.cost; free >= 0 {
		return max(from, m.instant+m.weighs(m.before, free))
	}
	return max(from, m.instant+m.window+m.weighs(m.count, m.burst-q.cost))
}

// weighs is how long after the start of a window the count of the one before weighs no more
// than is free.
func (m *slidingCounter) weighs(count, free int64) int64 {
	if count <= free {
		return 0
	}
	covered, _, _ := muldiv(m.window, free, count)
	return m.window - covered
}

func (m *slidingCounter) leave(slot, _ int64) int64 { return slot }

func (m *slidingCounter) charge(now, slot, cost int64) {
	m.roll(slot)
	m.count += cost
	m.last = slot
	m.reserve(now, slot)
}

func (m *slidingCounter) giveBack(slot, cost int64) (given bool) {
	count := &m.count
	switch slot - slot%m.window {
	case m.instant:
	case m.instant - m.window:
		count = &m.before
	default:
		return false
	}
	given = *count > 0
	*count = max(0, *count-cost)
	return given
}

func (m *slidingCounter) remaining(now int64) int64 {
	if m.slot(now, question{cost: 1}) > now {
		return 0
	}
	// The weight is rounded up.
	weight, rest, _ := muldiv(m.before, m.instant+m.window-now, m.window)
	return max(0, m.burst-m.count-up(weight, rest))
}

func (m *slidingCounter) fresh() int64 {
	switch {
	case m.count > 0:
		return m.instant + 2*m.window
	case m.before > 0:
		return m.instant + m.window
	}
	return m.instant
}
