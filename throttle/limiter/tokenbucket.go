package limiter

// tokenBucket: count is the tokens there were at the instant, and parts, at which the last
// one came back. A part of a token on its way is the time since then, so that a changed
// rate does not change it, and no call cuts it off.
type tokenBucket struct {
	*terms
	state
}

func (m *tokenBucket) move(now int64) (moved bool) {
	back := m.back(now)
	m.instant -= back
	m.written = min(m.written, now)
	m.refill(now)
	return back > 0
}

// refill puts in the tokens that come back until an instant.
func (m *tokenBucket) refill(at int64) {
	if m.parts >= m.rate { // of another rate
		m.instant, m.parts = m.instant+1, 0
	}
	if span := at - m.instant; span > 0 {
		// From the fraction of the instant on: a µs less, and what is missing to it.
		us, parts := span, int64(0)
		if m.parts > 0 {
			us, parts = span-1, m.rate-m.parts
		}
		tokens := m.cost(us, parts)
		m.count += tokens
		m.instant, m.parts = m.after(m.instant, m.parts, tokens)
	}
	if m.count >= m.burst {
		m.count, m.instant, m.parts = m.burst, max(m.instant, at), 0
	}
}

func (m *tokenBucket) slot(now int64, q question) int64 {
	us, parts := m.after(m.instant, m.parts, max(0, q.cost-m.count))
	return max(now, up(us, parts))
}

func (m *tokenBucket) leave(slot, _ int64) int64 { return slot }

func (m *tokenBucket) charge(now, slot, cost int64) {
	m.refill(slot)
	m.count -= cost
	m.reserve(now, slot)
}

func (m *tokenBucket) giveBack(int64, int64) bool { return false } // others have got the tokens that come next

func (m *tokenBucket) remaining(now int64) int64 {
	if up(m.instant, m.parts) > now {
		return 0
	}
	return max(0, m.count)
}

func (m *tokenBucket) fresh() int64 {
	if m.count >= m.burst {
		return 0
	}
	return up(m.after(m.instant, m.parts, m.burst-m.count))
}
