package limiter

// fixedWindow: instant is the start of the window that count was charged in, which lies
// ahead where that was reserved.
type fixedWindow struct {
	*terms
	state
}

func (m *fixedWindow) move(now int64) {
	m.instant -= m.back(now)
	m.written = min(m.written, now)
	if m.instant+m.window <= now {
		m.count = 0
	}
	// Also where the window has another length than it had.
	m.instant = max(m.instant, now)
	m.instant -= m.instant % m.window
}

func (m *fixedWindow) slot(now, cost int64) int64 {
	if m.count+cost > m.burst {
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

func (m *fixedWindow) giveBack(slot, cost int64) {
	if slot-slot%m.window == m.instant {
		m.count = max(0, m.count-cost)
	}
}

func (m *fixedWindow) remaining(now int64) int64 {
	if m.instant > now {
		return 0
	}
	return max(0, m.burst-m.count)
}

func (m *fixedWindow) fresh() int64 {
	if m.count == 0 {
		return 0
	}
	return m.instant + m.window
}
