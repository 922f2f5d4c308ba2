package limiter

// fixedWindow: instant is the start of the window that count was charged in, which lies
// ahead where that was reserved.
type fixedWindow struct {
	*terms
	state
}

func (m *fixedWindow) move(now int64) (moved bool) {
	back := m.back(now)
	m.instant -= back
	m.written = min(m.written, now)
	m.instant -= m.instant % m.window // it may have had another length
	if m.instant+m.window <= now {
		m.count, m.instant = 0, now-now%m.window
	}
	return back > 0
}

func (m *fixedWindow) slot(now int64, q question) int64 {
	if m.count+q.cost > m.burst {
		return m.instant + m.window
	}
	return max(now, m.instant)
}

func (m *fixedWindow) leave(slot, _ int64) int64 { return slot }

func (m *fixedWindow) charge(now, slot, cost int64) {
	if start := slot - slot%m.window; start > m.instant {
		m.instant, m.count = start, 0
	}
	m.count += cost
	m.reserve(now, slot)
}

func (m *fixedWindow) giveBack(slot, cost int64) (given bool) {
	if slot-slot%m.window != m.instant || m.count == 0 {
		return false
	}
	m.count = max(0, m.count-cost)
	return true
}

func (m *fixedWindow) remaining(now int64) int64 {
	if m.instant > now {
		return 0
	}
	return max(0, m.burst-m.count)
}

func (m *fixedWindow) fresh() int64 {
	if m.count == 0 {
		return m.instant // ahead, if what was reserved in that window is given back: the one before is not known any more
	}
	return m.instant + m.window
}
