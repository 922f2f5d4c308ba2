package throttle

import "math"

const (
	// fewest is the cost below which a share of a sliding window is played as a bucket:
	// whole jobs hardly fit it.
	fewest = 32

	// logGrain is the part of a window to which the log of the scripts is coarse, and
	// partsOfOne how many windows a job takes up at most that is dearer than the quota.
	logGrain   = 1000
	partsOfOne = 64

	// fewestEntries is from how many entries in a row on they count as if each job had its
	// own.
	fewestEntries = 8

	// mostEntries is how many different ones a log keeps apart. Beyond that, those that lie
	// close together, for the time that has passed, become even.
	mostEntries = 1024
)

// A slidingCount is a sliding window in a forecast, with the log that the scripts keep: a
// job counts from when it leaves until span after the last one that shares its entry. The
// places in flight are one too, which counts jobs instead of cost and lasts for a run.
type slidingCount struct {
	limit float64
	per   float64 // period between parts of a dear job
	span  float64 // with the guard
	grain float64 // how long an entry may be
	jobs  bool    // counts jobs

	used float64
	log  []entries // oldest first
	gone int       // of these, count no more

	seen view
}

// entries are n entries of a log, each of that cost. The first one ends at an instant, the
// others follow at even distances. begins is when the first did; it counts where n is 1.
type entries struct {
	begins, at, every float64
	n                 int64
	cost              float64
}

func (e entries) last() float64 { return e.at + float64(e.n-1)*e.every }

// A view is what a window looks like from an instant on: how many jobs of a cost have
// room, and what will make room next.
type view struct {
	cost float64
	free int64
	rest float64 // of the room, beyond the free jobs
	next entries // from when they count no more; none if n is 0
}

func newSlidingCount(q Quota, c counted, out, share, guard float64, now int64) slidingCount {
	per := float64(q.Per.Microseconds())
	used := c.used + out
	s := slidingCount{
		limit: share * float64(q.Limit), used: share * used,
		per: per, span: per + guard, grain: per / logGrain,
	}
	known, begins := 0.0, math.Inf(-1)
	for _, l := range c.log {
		known += l.cost
		at := float64(l.at - now)
		// It began after the one before it ended, and is no longer than a grain.
		s.log = append(s.log, entries{begins: max(begins, at-s.grain), at: at, cost: share * l.cost, n: 1})
		begins = at
	}
	// What is about to leave, and what nobody told the time of.
	if rest := share * (used - known); rest > tooLittle {
		s.log = append(s.log, entries{cost: rest, n: 1})
	}
	return s
}

// addPlaces has the places in flight limit the line: a job takes one for as long as a run
// takes.
func (f *forecast) addPlaces(s stage) {
	span := float64(s.run.Microseconds())
	if span <= 0 {
		return
	}
	places := s.policy.MaxInFlight
	switch {
	case s.policy.Ordered:
		places = 1
	case places == 0:
		places = DefaultPolicy.MaxInFlight
	}
	c := slidingCount{limit: float64(places), per: span, span: span, jobs: true, used: float64(s.flight)}
	if s.flight > 0 {
		// Their ends are even, the last after a whole run.
		every := span / float64(s.flight)
		c.log = []entries{{at: every - span, every: every, cost: 1, n: s.flight}}
	}
	f.sliding = append(f.sliding, c)
}

// sharedSliding is a small share of a window as a bucket that leaks in the window's
// period, once the whole window has room.
func sharedSliding(q Quota, c counted, out, share, guard float64, now int64) meter {
	whole := newSlidingCount(q, c, out, 1, guard, now)
	m := meter{burst: share * whole.limit, level: share * whole.used, turn: (1 - share) / 2}
	m.rate = m.burst / whole.span
	if m.at = max(0, whole.earliest(1)); m.at > 0 {
		m.level = m.burst
	}
	return m
}

// amount is what a job of that cost counts.
func (q *slidingCount) amount(cost float64) float64 {
	if q.jobs {
		return 1
	}
	return cost
}

// takes is the time in which it lets what it lets: a window, or as many as a dear job
// takes up.
func (q *slidingCount) takes(cost float64) float64 {
	return q.span * max(1, math.Ceil(q.amount(cost)/q.limit))
}

// earliest is when the window has room for a job of that cost. A dearer one than the
// quota has room when nothing else counts.
func (q *slidingCount) earliest(cost float64) float64 {
	need := q.used + min(q.amount(cost), q.limit) - q.limit
	if need <= tooLittle {
		return 0
	}
	at := 0.0
	for i := q.gone; i < len(q.log); i++ {
		e := &q.log[i]
		if float64(e.n)*e.cost >= need-tooLittle {
			return e.at + q.span + max(0, math.Ceil((need-tooLittle)/e.cost)-1)*e.every
		}
		need -= float64(e.n) * e.cost
		at = e.last() + q.span
	}
	return at
}

// over is how many of the entries count no more at an instant.
func (q *slidingCount) over(e *entries, at float64) int64 {
	switch first := e.at + q.span; {
	case first > at:
		return 0
	case e.every <= 0:
		return e.n
	default:
		return min(e.n, int64(min(most, (at-first)/e.every))+1)
	}
}

// look sees the window from an instant on at which a job of that cost may leave.
func (q *slidingCount) look(at, cost float64) {
	cost = q.amount(cost)
	room := q.limit - q.used
	var next entries
	for i := q.gone; i < len(q.log); i++ {
		e := &q.log[i]
		n := q.over(e, at+slack(at))
		room += float64(n) * e.cost
		if n < e.n {
			next = *e
			next.at += q.span + float64(n)*e.every
			next.n -= n
			break
		}
	}
	free := max(1, whole(room/cost))
	q.seen = view{cost: cost, free: free, rest: max(0, room-float64(free)*cost), next: next}
}

// distance is how far the next job is from one that leaves at an instant, if each job
// that leaves takes the room of one that counts no more; else 0. Call it before most.
func (q *slidingCount) distance(at, cost float64) float64 {
	q.look(at, cost)
	s := &q.seen
	e := &s.next
	if e.n == 0 || e.every <= 0 || !near(e.at-e.every, at, slack(at)) {
		return 0
	}
	if float64(s.free)*s.cost > e.cost+tooLittle {
		return 0
	}
	if s.free > 1 && (e.n < fewestEntries || e.every > 2*q.grain) {
		return 0
	}
	return e.every * s.cost / e.cost
}

// most is for how many jobs the window has room as they leave.
func (q *slidingCount) most(r run) int64 {
	s := &q.seen
	e := &s.next
	if s.cost > q.limit || e.n == 0 {
		return s.free
	}
	room := max(0, math.Ceil((s.cost-s.rest-tooLittle)/e.cost)-1) // entries besides one
	first := e.at + room*e.every
	ahead := r.at + float64(s.free)*r.every - first
	off := slack(r.at)
	if ahead < -off {
		return s.free
	}
	n := float64(e.n)
	if every := r.every * e.cost / s.cost; every < e.every-off/n {
		n = min(n, room+1+math.Floor((max(0, ahead)+off)/(e.every-every)))
	}
	return min(most, s.free+whole((n*e.cost+s.rest)/s.cost))
}

// take counts a run, and forgets what counts no more at its end.
func (q *slidingCount) take(r run, coarse bool) {
	cost := q.amount(r.cost)
	q.pass(r.last())
	q.used += float64(r.n) * cost
	if cost > q.limit {
		q.takeUp(r.at, cost)
		return
	}
	r.cost = cost
	n := q.join(r)
	r.at += float64(n) * r.every
	if r.n -= n; r.n > 0 {
		q.begin(r, coarse)
	}
}

// together is how many jobs of a run have room in an entry that began at an instant and
// has that cost.
func (q *slidingCount) together(r run, began, cost float64) int64 {
	if r.at-began > q.grain {
		return 0
	}
	n := whole((q.limit - cost) / r.cost)
	if r.every > 0 {
		n = min(n, whole((q.grain-(r.at-began))/r.every)+1)
	}
	return min(n, r.n)
}

// join adds the first jobs of a run to the last entry, if that may grow.
func (q *slidingCount) join(r run) int64 {
	if len(q.log) == q.gone {
		return 0
	}
	e := &q.log[len(q.log)-1]
	if e.n > 1 {
		return 0
	}
	n := q.together(r, e.begins, e.cost)
	if n > 0 {
		e.at = r.at + float64(n-1)*r.every
		e.cost += float64(n) * r.cost
	}
	return n
}

// begin makes new entries of a run.
func (q *slidingCount) begin(r run, coarse bool) {
	each := max(1, q.together(r, r.at, 0))
	full := (r.n - 1) / each // the last one may grow
	if full > 0 {
		q.add(entries{
			begins: r.at, at: r.at + float64(each-1)*r.every, every: float64(each) * r.every,
			n: full, cost: float64(each) * r.cost,
		}, coarse)
	}
	from := r.at + float64(full*each)*r.every
	q.add(entries{begins: from, at: r.last(), n: 1, cost: float64(r.n-full*each) * r.cost}, coarse)
}

// add appends entries. Those that were last, and can grow no more, join the ones before
// them if they go on like these.
func (q *slidingCount) add(e entries, coarse bool) {
	if n := len(q.log); n-q.gone > 1 && q.log[n-2].join(&q.log[n-1], coarse) {
		q.log = q.log[:n-1]
	}
	if len(q.log) == cap(q.log) && q.gone > len(q.log)/2 {
		q.log, q.gone = q.log[:copy(q.log, q.log[q.gone:])], 0
	}
	q.log = append(q.log, e)
}

// join makes one of two that follow each other where that changes little: nothing, unless
// it is to be coarse.
func (e *entries) join(next *entries, coarse bool) bool {
	gap := next.at - e.last()
	every := e.every
	if e.n == 1 {
		every = gap
	}
	off := slack(next.at)
	goesOn := near(gap, every, off) && (next.n == 1 || near(next.every, every, off/float64(next.n)))
	if e.cost == next.cost && goesOn {
		e.every, e.n = every, e.n+next.n
		return true
	}
	if !coarse || next.last()-e.at > next.last()/mostEntries {
		return false
	}
	end, n := next.last(), e.n+next.n
	e.cost = (float64(e.n)*e.cost + float64(next.n)*next.cost) / float64(n)
	e.every, e.n = (end-e.at)/float64(n-1), n
	return true
}

func near(a, b, off float64) bool { return a-b <= off && b-a <= off }

// pass forgets what counts no more at an instant.
func (q *slidingCount) pass(at float64) {
	for ; q.gone < len(q.log); q.gone++ {
		e := &q.log[q.gone]
		n := q.over(e, at)
		q.used -= float64(n) * e.cost
		if n < e.n {
			e.at += float64(n) * e.every
			e.n -= n
			return
		}
	}
	q.used, q.log, q.gone = 0, q.log[:0], 0
}

// takeUp counts a job that is dearer than the quota, beside nothing else: it takes up
// windows to come.
func (q *slidingCount) takeUp(at, cost float64) {
	q.used, q.log, q.gone = cost, q.log[:0], 0
	for i := 1; cost > tooLittle; i++ {
		part := min(cost, q.limit)
		if i == partsOfOne {
			part = cost
		}
		q.log = append(q.log, entries{begins: at, at: at, cost: part, n: 1})
		cost -= part
		at += q.per
	}
}
