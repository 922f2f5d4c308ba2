package limitertest

import (
	"math/big"
	"slices"
	"time"

	"github.com/weirq/weir/throttle/limiter"
)

// A model is what an algorithm means, in exact fractions and without any thought of cost.
// Instants are µs.
type model interface {
	// allows tells whether a cost may pass at an instant, no earlier than all before.
	allows(at, cost int64) bool
	pass(at, cost int64)
	// left is how much may pass.
	left(at int64) int64
	// wait is how long until a cost may pass, if nothing else does.
	wait(at, cost int64) int64
	// reset is how long until all is as at first.
	reset(at int64) int64
}

func newModel(r limiter.Rule) model {
	l := r.Limit()
	switch r.Algorithm() {
	case limiter.FixedWindowAlgorithm:
		return &countModel{n: l.Rate, window: l.Period.Microseconds()}
	case limiter.SlidingLogAlgorithm:
		return &logModel{n: l.Rate, window: l.Period.Microseconds()}
	case limiter.SlidingCounterAlgorithm:
		return &countModel{n: l.Rate, window: l.Period.Microseconds(), weighs: true}
	default:
		return &bucketModel{rate: big.NewRat(l.Rate, l.Period.Microseconds()), burst: l.Burst, level: new(big.Rat)}
	}
}

// bucketModel leaks at the rate.
type bucketModel struct {
	rate, level *big.Rat
	burst, at   int64
}

func (m *bucketModel) levelAt(at int64) *big.Rat {
	leaked := new(big.Rat).Mul(m.rate, big.NewRat(at-m.at, 1))
	left := new(big.Rat).Sub(m.level, leaked)
	if left.Sign() < 0 {
		return new(big.Rat)
	}
	return left
}

func (m *bucketModel) allows(at, cost int64) bool { return m.wait(at, cost) == 0 }

func (m *bucketModel) pass(at, cost int64) {
	m.level, m.at = new(big.Rat).Add(m.levelAt(at), big.NewRat(cost, 1)), at
}

func (m *bucketModel) left(at int64) int64 {
	return floor(new(big.Rat).Sub(big.NewRat(m.burst, 1), m.levelAt(at)))
}

func (m *bucketModel) wait(at, cost int64) int64 {
	over := new(big.Rat).Sub(m.levelAt(at), big.NewRat(m.burst-cost, 1))
	return max(0, ceil(over.Quo(over, m.rate)))
}

func (m *bucketModel) reset(at int64) int64 {
	return ceil(new(big.Rat).Quo(m.levelAt(at), m.rate))
}

// logModel remembers every unit.
type logModel struct {
	n, window int64
	units     []int64
}

func (m *logModel) within(at int64) (live []int64) {
	for _, u := range m.units {
		if u > at-m.window {
			live = append(live, u)
		}
	}
	return live
}

func (m *logModel) allows(at, cost int64) bool { return int64(len(m.within(at)))+cost <= m.n }

func (m *logModel) pass(at, cost int64) {
	m.units = append(m.within(at), slices.Repeat([]int64{at}, int(cost))...)
}

func (m *logModel) left(at int64) int64 { return max(0, m.n-int64(len(m.within(at)))) }

func (m *logModel) wait(at, cost int64) int64 {
	if m.allows(at, cost) {
		return 0
	}
	for _, u := range m.within(at) {
		if m.allows(u+m.window, cost) {
			return u + m.window - at
		}
	}
	panic("no window is free for a cost that is within the limit")
}

func (m *logModel) reset(at int64) int64 {
	live := m.within(at)
	if len(live) == 0 {
		return 0
	}
	return live[len(live)-1] + m.window - at
}

// countModel counts in aligned windows. It may weigh the window before.
type countModel struct {
	n, window, start int64
	count, before    int64
	weighs           bool
}

// counts are those of the window of an instant, and of the one before.
func (m *countModel) counts(at int64) (start, count, before int64) {
	start = at - at%m.window
	switch {
	case m.start == start:
		return start, m.count, m.before
	case m.start+m.window == start:
		return start, 0, m.count
	}
	return start, 0, 0
}

// used is what counts at an instant.
func (m *countModel) used(at int64) *big.Rat {
	start, count, before := m.counts(at)
	used := big.NewRat(count, 1)
	if m.weighs {
		used.Add(used, new(big.Rat).Mul(big.NewRat(before, 1), big.NewRat(start+m.window-at, m.window)))
	}
	return used
}

func (m *countModel) allows(at, cost int64) bool {
	return m.used(at).Cmp(big.NewRat(m.n-cost, 1)) <= 0
}

func (m *countModel) pass(at, cost int64) {
	m.start, m.count, m.before = m.counts(at)
	m.count += cost
}

func (m *countModel) left(at int64) int64 {
	return max(0, floor(new(big.Rat).Sub(big.NewRat(m.n, 1), m.used(at))))
}

// wait is found by halving in each of the windows to come: in one what is used only falls.
func (m *countModel) wait(at, cost int64) int64 {
	for from := at; ; from = from - from%m.window + m.window {
		low, high := from, from-from%m.window+m.window-1
		if !m.allows(high, cost) {
			continue
		}
		for low < high {
			if middle := low + (high-low)/2; m.allows(middle, cost) {
				high = middle
			} else {
				low = middle + 1
			}
		}
		return low - at
	}
}

func (m *countModel) reset(at int64) int64 {
	start, count, before := m.counts(at)
	switch {
	case count > 0 && m.weighs:
		return start + 2*m.window - at
	case count > 0 || before > 0 && m.weighs:
		return start + m.window - at
	}
	return 0
}

func floor(r *big.Rat) int64 {
	q := new(big.Int)
	return q.Div(r.Num(), r.Denom()).Int64() // Euclidean: down, for a denominator above 0
}

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }

// answer is the result that the model expects, and takes the cost if it passes.
func answer(m model, r limiter.Rule, at, cost int64) limiter.Result {
	out := limiter.Result{Allowed: m.allows(at, cost), Limit: r.Limit().Burst}
	if out.Allowed {
		if r.Algorithm() == limiter.LeakyQueueAlgorithm {
			out.Delay = time.Duration(m.reset(at)) * time.Microsecond
		}
		m.pass(at, cost)
	} else {
		out.RetryAfter = time.Duration(m.wait(at, cost)) * time.Microsecond
	}
	out.Remaining = m.left(at)
	out.ResetAfter = time.Duration(m.reset(at)) * time.Microsecond
	return out
}

// ratOf is a × b / c.
func ratOf(a, b, c int64) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(a, 1), big.NewRat(b, c))
}
