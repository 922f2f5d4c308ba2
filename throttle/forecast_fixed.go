package throttle

import "math"

// A fixedCount is a quota of fixed windows in a forecast.
type fixedCount struct {
	limit, used float64
	id          int64 // of the window that used is of
	shared      bool  // a share of the quota: whole jobs need not fit it, what is too much goes over
	per, guard  float64
	days        *zoneClock // whose days the windows are; nil for multiples of per
	now         int64

	seen      int64   // the window that was asked for last
	from, end float64 // and when it is
}

func newFixedCount(q Quota, c counted, out, share, guard float64, now int64) fixedCount {
	w := fixedCount{
		limit: share * float64(q.Limit), used: share * c.used, id: c.window, shared: share < 1,
		per: float64(q.Per.Microseconds()), guard: guard, now: now,
	}
	if q.Zone != "" {
		w.days = newZoneClock(q.Zone)
	}
	if id, _ := w.window(0); id > w.id {
		w.used, w.id = w.in(id), id
	}
	w.used += share * out
	return w
}

// window is the number of the window that holds an instant, and its end.
func (w *fixedCount) window(at float64) (id int64, end float64) {
	if at >= w.from && at < w.end {
		return w.seen, w.end
	}
	instant := w.now + int64(math.Floor(at))
	if w.days == nil {
		per := int64(w.per)
		w.seen = floorDiv(instant, per)
		w.end = float64((w.seen+1)*per - w.now)
		w.from = w.end - w.per
	} else {
		w.seen = w.days.day(instant)
		w.end = float64(w.days.begins(w.seen+1, instant) - w.now)
		w.from = at
	}
	return w.seen, w.end
}

// in is what counts in a window from its own on: the debt of a dear job goes over.
func (w *fixedCount) in(id int64) float64 {
	if id <= w.id {
		return w.used
	}
	return max(0, w.used-w.limit*float64(id-w.id))
}

// guarded is whether a job has to leave so long before the end of a window as it may be
// late.
func (w *fixedCount) guarded() bool { return w.guard < w.per/2 }

// earliest is when a job of that cost may leave, from an instant on.
func (w *fixedCount) earliest(at, cost float64) float64 {
	if at >= forever {
		return at
	}
	id, end := w.window(at)
	if w.guarded() && at+w.guard > end+slack(at) {
		at = end
		id, end = w.window(at)
	}
	if id < w.id { // its slot is in a later window
		return w.begins(w.id, end)
	}
	used := w.in(id)
	switch {
	case used+cost <= w.limit+tooLittle, cost > w.limit && used <= tooLittle, w.shared && used < w.limit-tooLittle:
		return at
	case w.shared:
		return w.begins(id+max(1, whole(used/w.limit)), end)
	}
	over := used + min(cost, w.limit) - w.limit
	return w.begins(id+max(1, int64(math.Ceil((over-tooLittle)/w.limit))), end)
}

// begins is when a window begins that is later than the one with this end.
func (w *fixedCount) begins(id int64, end float64) float64 {
	if w.days != nil {
		if float64(id-w.seen)*w.per > forever {
			return forever
		}
		return float64(w.days.begins(id, w.now+int64(end)-1) - w.now)
	}
	return end + float64(id-w.seen-1)*w.per
}

func (w *fixedCount) most(r run) int64 {
	id, end := w.window(r.at)
	room := (w.limit - w.in(id)) / r.cost
	n := whole(room)
	if w.shared {
		n = whole(math.Ceil(room - tooLittle))
	}
	if w.guarded() {
		return min(n, r.until(end-w.guard, true))
	}
	return min(n, r.until(end, false))
}

func (w *fixedCount) take(r run) {
	id, _ := w.window(r.at)
	w.used = w.in(id) + float64(r.n)*r.cost
	w.id = max(w.id, id)
}

// takes is the time in which it lets what it lets: a window, or as many as a dear job
// takes up.
func (w *fixedCount) takes(cost float64) float64 {
	return w.per * max(1, math.Ceil(cost/w.limit))
}
