package throttle

import (
	"fmt"
	"time"
)

// A QuotaUse is the window in which a quota was used most, relative to its limit.
type QuotaUse struct {
	Quota    Quota // as it was in that window
	Most     float64
	From, To time.Time // the first and the last departure of a sliding window, the edges of a fixed one; zero without any
}

// A quotaWindow counts what left in the window that ends at a departure. A job dearer
// than the limit takes up windows to come as well, as in the scripts: no more than the
// limit counts in each.
type quotaWindow interface {
	// move forgets what is in the window no more. at is in the scale of places.
	move(limit, at int64, clock time.Time)
	// add counts cost; early is what left when it should not have.
	add(limit, at int64, clock time.Time, cost float64, early bool)
	// used is what is counted, without and with what left too early.
	used() (judged, seen float64)
	// bounds is the window in which something was just counted.
	bounds(clock time.Time) (from, to time.Time)
}

// A quotaCheck judges departures by one quota of a policy.
type quotaCheck struct {
	quota Quota
	*quotaCount
}

// A quotaCount is what is counted in a quota. It stays the same when the limit changes.
type quotaCount struct {
	window  quotaWindow
	use     int // place in Verification.Quotas
	current *Violation
	last    int64 // the place of the last departure that left too early
}

// sameWindow tells whether two quotas are one with another limit. What was counted
// under the one counts under the other.
func (q Quota) sameWindow(other Quota) bool {
	other.Limit = q.Limit
	return q == other
}

// addQuotas has a rulebook know the quotas of its policy. Those that are new begin to
// count.
func (c *check) addQuotas(book *rulebook) {
	for _, quota := range book.policy.Quotas {
		q := &quotaCheck{quota: quota}
		if len(c.rulebooks) > 0 {
			for _, old := range c.now().quotas {
				if old.quota.sameWindow(quota) {
					q.quotaCount = old.quotaCount
				}
			}
		}
		if q.quotaCount == nil {
			q.quotaCount = c.newCount(quota)
		}
		if q.quotaCount != nil {
			book.quotas = append(book.quotas, q)
		}
	}
}

func (c *check) newCount(quota Quota) *quotaCount {
	q := &quotaCount{use: -1}
	if quota.Window == Sliding {
		q.window = &slidingWindow{per: quota.Per}
	} else {
		zone, err := loadZone(quota.Zone)
		if err != nil {
			c.unchecked(fmt.Sprintf("quota %v: the zone is not known here", quota))
			return nil
		}
		q.window = &fixedWindow{per: quota.Per, zone: zone, days: quota.Zone != ""}
	}
	for i, u := range c.v.Quotas {
		if u.Quota.sameWindow(quota) {
			q.use = i
		}
	}
	if q.use < 0 {
		q.use = len(c.v.Quotas)
		c.v.Quotas = append(c.v.Quotas, QuotaUse{Quota: quota})
	}
	return q
}

// depart judges a departure. What is spared is counted, but need not be made room for.
func (q *quotaCheck) depart(c *check, d *Departure, book *rulebook, spared float64) {
	at, cost, limit := d.place.or(d.At).at, float64(d.Cost), float64(q.quota.Limit)
	q.window.move(q.quota.Limit, at, d.At)
	judged, seen := q.window.used()
	need := min(cost, limit) // a dearer job leaves when nothing else is counted
	early := !d.Forced && judged-spared+need > limit+toleranceUnits
	q.window.add(q.quota.Limit, at, d.At, cost, early)
	from, to := q.note(c, d.At)
	if !early {
		return
	}
	if q.current == nil || q.apart(at, from) {
		q.current = c.violation("quota " + q.quota.String())
	}
	q.last = at
	q.current.widen(from, to, seen+cost, limit+cost-need, toleranceUnits, book.policy)
	q.current.note(d)
}

// settle counts what nobody waited for.
func (q *quotaCheck) settle(c *check, s *Settlement) {
	at := s.place.or(s.At).at
	q.window.move(q.quota.Limit, at, s.At)
	q.window.add(q.quota.Limit, at, s.At, float64(s.Off), false)
	q.note(c, s.At)
}

// note keeps the window that ends now if it is the one in which the quota was used most.
func (q *quotaCheck) note(c *check, at time.Time) (from, to time.Time) {
	from, to = q.window.bounds(at)
	_, most := q.window.used()
	if u := &c.v.Quotas[q.use]; u.From.IsZero() || most/float64(q.quota.Limit) > u.Most/float64(u.Quota.Limit) {
		*u = QuotaUse{Quota: q.quota, Most: most, From: from, To: to}
	}
	return from, to
}

// apart tells whether a departure that left too early did so in another window than the
// last one did.
func (q *quotaCheck) apart(at int64, from time.Time) bool {
	if q.quota.Window == Fixed {
		return !from.Equal(q.current.From)
	}
	return at-q.last >= q.quota.Per.Microseconds()
}

// mostParts is how many windows a dear job takes up at most in a sliding quota; the last
// one takes the rest: see quota.lua.
const mostParts = 64

// A quotaPart is what a departure counts in the present window, and in those to come.
type quotaPart struct {
	at    int64
	clock time.Time
	limit float64 // of the quota when it left
	cost  float64
	left  float64
	parts int
	early bool
}

// A slidingWindow looks back over a period at each departure. What is counted leaves it
// in the order in which it came: a dear job's part of the next window is put in again at
// the end.
type slidingWindow struct {
	per           time.Duration
	line          []quotaPart // from first on
	first         int
	judged, early float64
}

func (w *slidingWindow) move(_, at int64, _ time.Time) {
	per := w.per.Microseconds()
	for w.first < len(w.line) && w.line[w.first].at+per <= at {
		c := w.line[w.first]
		w.first++
		w.sum(c, -c.cost)
		if c.left > 0 {
			c.at += per
			c.clock = c.clock.Add(w.per)
			w.put(c)
		}
	}
	if w.first > 1024 && w.first > len(w.line)/2 {
		w.line = append(w.line[:0], w.line[w.first:]...)
		w.first = 0
	}
	if w.first == len(w.line) { // so that rounding does not add up
		w.judged, w.early = 0, 0
	}
}

// put counts as much of what is left as one window takes.
func (w *slidingWindow) put(c quotaPart) {
	c.parts++
	c.cost = c.left
	if c.parts < mostParts {
		c.cost = min(c.left, c.limit)
	}
	c.left -= c.cost
	w.line = append(w.line, c)
	w.sum(c, c.cost)
}

func (w *slidingWindow) sum(c quotaPart, cost float64) {
	if c.early {
		w.early += cost
	} else {
		w.judged += cost
	}
}

func (w *slidingWindow) add(limit, at int64, clock time.Time, cost float64, early bool) {
	w.put(quotaPart{at: at, clock: clock, limit: float64(limit), left: cost, early: early})
}

func (w *slidingWindow) used() (judged, seen float64) { return w.judged, w.judged + w.early }

func (w *slidingWindow) bounds(clock time.Time) (from, to time.Time) {
	return w.line[w.first].clock, clock
}

// A fixedWindow is a counter that begins anew at the edges of the windows. What a dear
// job cost more than the limit is debt, which goes over into the next ones.
type fixedWindow struct {
	per           time.Duration
	zone          *time.Location
	days          bool  // whether the windows are the days of the zone, not periods since 1970
	number        int64 // of the window: the last one that anything was counted in
	judged, early float64
	debt          float64 // what of judged is for windows to come
}

// of is the number of the window that holds an instant.
func (w *fixedWindow) of(clock time.Time) int64 {
	us, per := clock.UnixMicro(), w.per.Microseconds()
	if w.days {
		_, offset := clock.In(w.zone).Zone()
		us += int64(offset) * time.Second.Microseconds()
	}
	n := us / per
	if us%per < 0 {
		n--
	}
	return n
}

func (w *fixedWindow) move(limit, _ int64, clock time.Time) {
	number := w.of(clock)
	if number <= w.number {
		return // a slot of a later window was given out, and the clock stepped back
	}
	w.judged = max(0, w.judged-float64(limit)*float64(number-w.number))
	w.debt = max(0, w.judged-float64(limit))
	w.number, w.early = number, 0
}

func (w *fixedWindow) add(limit, _ int64, _ time.Time, cost float64, early bool) {
	if early {
		w.early += cost
		return
	}
	w.judged += cost
	w.debt += max(0, cost-float64(limit))
}

func (w *fixedWindow) used() (judged, seen float64) {
	return w.judged, max(0, w.judged-w.debt) + w.early
}

func (w *fixedWindow) bounds(time.Time) (from, to time.Time) {
	return w.edge(w.number), w.edge(w.number + 1)
}

// edge is the instant at which a window begins.
func (w *fixedWindow) edge(number int64) time.Time {
	if !w.days {
		return time.UnixMicro(number * w.per.Microseconds()).UTC()
	}
	y, m, d := time.Unix(number*int64(day/time.Second), 0).UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, w.zone).UTC()
}
