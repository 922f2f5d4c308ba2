package limiter

import "slices"

// slidingLog: entries are the slots of each unit of cost, in order; count is how many they
// are, and instant the last one. A unit counts from its slot until a window later, that
// instant excluded.
type slidingLog struct {
	*terms
	state
	entries []int64
}

func (m *slidingLog) move(now int64) (moved bool) {
	back := m.back(now)
	if back > 0 {
		for i := range m.entries {
			m.entries[i] -= back
		}
	}
	m.written = min(m.written, now)
	live, _ := slices.BinarySearch(m.entries, now-m.window+1)
	m.entries = slices.Delete(m.entries, 0, live)
	m.tally()
	return back > 0
}

func (m *slidingLog) tally() {
	m.instant, m.count = 0, int64(len(m.entries))
	if m.count > 0 {
		m.instant = m.entries[m.count-1]
	}
}

func (m *slidingLog) slot(now int64, q question) int64 {
	slot := max(now, m.instant)
	if over := m.count + q.cost - m.burst; over > 0 && m.count > 0 {
		slot = max(slot, m.entries[over-1]+m.window)
	}
	return slot
}

func (m *slidingLog) leave(slot, _ int64) int64 { return slot }

func (m *slidingLog) charge(now, slot, cost int64) {
	for range cost {
		m.entries = append(m.entries, slot)
	}
	m.tally()
	m.reserve(now, slot)
}

func (m *slidingLog) giveBack(slot, cost int64) (given bool) {
	i, _ := slices.BinarySearch(m.entries, slot)
	j := i
	for j < len(m.entries) && j < i+int(cost) && m.entries[j] == slot {
		j++
	}
	m.entries = slices.Delete(m.entries, i, j)
	m.tally()
	return j > i
}

func (m *slidingLog) restore(state, state) bool { return false }

func (m *slidingLog) remaining(now int64) int64 {
	if m.instant > now {
		return 0
	}
	return max(0, m.burst-m.count)
}

func (m *slidingLog) fresh() int64 {
	if m.count == 0 {
		return 0
	}
	return m.instant + m.window
}
