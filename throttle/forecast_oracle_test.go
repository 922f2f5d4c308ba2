package throttle

import (
	"math"
	"slices"
	"time"
)

// An oracle plays a line through job by job, from what the limits are defined as. It is
// slow and simple: every departure is kept, and every rule asks all of them.
type oracle struct {
	now    int64
	stages []*oracleStage
	last   float64
	ends   []float64 // of runs, sorted
	places int
	run    float64
}

type oracleStage struct {
	policy Policy
	guard  float64
	level  float64
	at     float64 // of level
	ramped float64
	cool   float64
	quotas []*oracleQuota

	zone   *time.Location // of the hours; nil if there are none
	closed [minutesPerWeek]int
}

type oracleQuota struct {
	Quota
	zone *time.Location
	used map[int64]float64 // by fixed window
	last int64             // fixed window of the last departure
	left []entry           // sliding: what counts, oldest first
	sum  float64
}

// An entry is what left within a thousandth of a sliding window: the log is no finer.
type entry struct{ first, last, cost float64 }

func newOracle(o outlook) *oracle {
	or := &oracle{now: o.now}
	for i, s := range o.stages {
		p := s.policy.WithDefaults()
		st := &oracleStage{policy: p, guard: guardOf(p.Limit), level: s.level + s.out, at: float64(o.now), ramped: float64(s.ramped), cool: float64(s.cool)}
		if p.Hours != nil {
			st.zone, st.closed = mustZone(p.Hours.Zone), closedFor(*p.Hours)
		}
		for j, q := range p.Quotas {
			oq := &oracleQuota{Quota: q, zone: mustZone(q.Zone), used: map[int64]float64{}}
			if j < len(s.quotas) {
				c := s.quotas[j]
				if q.Window == Fixed {
					oq.last, oq.used[c.window] = c.window, c.used
				} else {
					for _, l := range c.log {
						oq.left = append(oq.left, entry{float64(l.at), float64(l.at), l.cost})
					}
					oq.sum = c.used
				}
			}
			st.quotas = append(st.quotas, oq)
		}
		or.stages = append(or.stages, st)
		if i == 0 && s.run > 0 {
			or.places, or.run = p.MaxInFlight, float64(s.run.Microseconds())
			for k := range s.flight {
				or.ends = append(or.ends, float64(o.now)+float64(k+1)*or.run/float64(s.flight))
			}
		}
	}
	or.last = float64(o.now)
	return or
}

func mustZone(name string) *time.Location {
	zone, err := loadZone(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// depart has the next job leave and tells when.
func (or *oracle) depart(cost float64) float64 {
	at := or.last
	for {
		before := at
		for _, s := range or.stages {
			at = s.from(at, cost)
		}
		if n := len(or.ends) - or.places; or.places > 0 && n >= 0 {
			at = max(at, or.ends[n])
		}
		if at == before {
			break
		}
	}
	or.last = at
	for _, s := range or.stages {
		s.take(at, cost)
	}
	if or.places > 0 {
		end := at + or.run
		i, _ := slices.BinarySearch(or.ends, end)
		or.ends = slices.Insert(or.ends, i, end)
		if extra := len(or.ends) - or.places; extra > 0 {
			or.ends = or.ends[extra:]
		}
	}
	return at
}

// outlook is what the line stands at, once the last job has left. What it does not tell is
// forgotten.
func (or *oracle) outlook() outlook {
	o := outlook{now: int64(math.Ceil(or.last))}
	for _, s := range or.stages {
		out := stage{
			policy: s.policy, share: 1, ramped: int64(s.ramped), cool: int64(s.cool),
			level: max(0, s.level-s.leaked(s.at, float64(o.now))),
		}
		for _, q := range s.quotas {
			c := counted{window: q.last, used: q.used[q.last]}
			if q.Window == Sliding {
				c.used = q.sum
				begun := 0.0
				for i := range q.left {
					e := &q.left[i]
					// When it began is not told.
					e.first, begun = max(begun, e.last-float64(q.Per.Microseconds())/1000), e.last
					c.log = append(c.log, loggedCost{int64(math.Round(e.last)), e.cost})
				}
			}
			out.quotas = append(out.quotas, c)
		}
		o.stages = append(o.stages, out)
	}
	return o
}

// leaked is the cost that leaks between two instants. Where the rate is on its ramp it
// is a trapezium.
func (s *oracleStage) leaked(from, to float64) float64 {
	rate := float64(s.policy.Limit.Rate) / float64(s.policy.Limit.Period.Microseconds())
	r := s.policy.Ramp
	if r == nil || s.ramped == 0 {
		return (to - from) * rate
	}
	begin, end := s.ramped, s.ramped+float64(r.Over.Microseconds())
	part := func(at float64) float64 { return r.From + (1-r.From)*(at-begin)/(end-begin) }
	sum := max(0, min(to, begin)-from) + max(0, to-max(from, end))
	if a, b := max(from, begin), min(to, end); a < b {
		sum += (b - a) * (part(a) + part(b)) / 2
	}
	return sum * rate
}

func (s *oracleStage) from(at, cost float64) float64 {
	at = max(at, s.cool)
	fits := func(t float64) bool {
		return max(0, s.level-s.leaked(s.at, t)) <= max(0, float64(s.policy.Limit.Burst)-cost)+1e-9
	}
	if !fits(at) {
		low, high := at, at+1
		for !fits(high) {
			high = at + 2*(high-at)
		}
		for high-low > 1e-3+low*2.5e-16 {
			mid := (low + high) / 2
			if fits(mid) {
				high = mid
			} else {
				low = mid
			}
		}
		at = high
	}
	if s.zone != nil {
		for !s.open(at) || !s.open(at+s.guard) {
			at = s.nextOpen(at)
		}
	}
	for _, q := range s.quotas {
		at = q.from(at, cost, s.guard)
	}
	return at
}

func (s *oracleStage) open(at float64) bool { return s.closed[s.minute(at)] == 0 }

// minute is that of the week, from Monday 00:00.
func (s *oracleStage) minute(at float64) int {
	t := time.UnixMicro(int64(at)).In(s.zone)
	return (int(t.Weekday())+6)%7*minutesPerDay + t.Hour()*60 + t.Minute()
}

// closedFor says for each minute of the week how many minutes it is to the next opening.
func closedFor(h Hours) (minutes [minutesPerWeek]int) {
	open := make(map[int]bool)
	for _, o := range h.Open {
		from, to := int(o.From.Minutes()), int(o.To.Minutes())
		if to <= from {
			to += minutesPerDay
		}
		for d := range 7 {
			if len(o.Days) > 0 && !slices.Contains(o.Days, time.Weekday((d+1)%7)) {
				continue
			}
			for m := from; m < to; m++ {
				open[(d*minutesPerDay+m)%minutesPerWeek] = true
			}
		}
	}
	for m := 2*minutesPerWeek - 1; m >= 0; m-- {
		if open[m%minutesPerWeek] {
			minutes[m%minutesPerWeek] = 0
		} else {
			minutes[m%minutesPerWeek] = minutes[(m+1)%minutesPerWeek] + 1
		}
	}
	return minutes
}

// nextOpen is when the next opening begins. It looks at every minute of the last hours before.
func (s *oracleStage) nextOpen(at float64) float64 {
	const minute, change = 60e6, 180 // minutes; no clocks change by more
	was := s.open(at)
	for {
		steps := 1
		if !was {
			steps = max(1, s.closed[s.minute(at)]-change)
		}
		at = (math.Floor(at/minute) + float64(steps)) * minute
		is := s.open(at)
		if is && !was {
			return at
		}
		was = is
	}
}

func (q *oracleQuota) window(at float64) (id int64, end float64) {
	per := float64(q.Per.Microseconds())
	if q.Zone == "" {
		id = int64(math.Floor(at / per))
		return id, float64(id+1) * per
	}
	t := time.UnixMicro(int64(at)).In(q.zone)
	y, m, d := t.Date()
	id = time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	const step = 15 * time.Minute
	next := t.Truncate(step).Add(step)
	for next.In(q.zone).Day() == d {
		next = next.Add(step)
	}
	return id, float64(next.UnixMicro())
}

func (q *oracleQuota) from(at, cost, guard float64) float64 {
	limit, per := float64(q.Limit), float64(q.Per.Microseconds())
	if q.Window == Fixed {
		for {
			id, end := q.window(at)
			used := max(0, q.used[q.last]-limit*float64(id-q.last))
			late := guard < per/2 && at+guard > end
			if !late && id >= q.last && (used+cost <= limit || cost > limit && used == 0) {
				return at
			}
			at = end
		}
	}
	sum, counted := q.sum, q.left
	for len(counted) > 0 && counted[0].last+per+guard <= at {
		sum -= counted[0].cost
		counted = counted[1:]
	}
	for sum+min(cost, limit) > limit {
		at = max(at, counted[0].last+per+guard)
		sum -= counted[0].cost
		counted = counted[1:]
	}
	return at
}

func (s *oracleStage) take(at, cost float64) {
	s.level = max(0, s.level-s.leaked(s.at, at)) + cost
	s.at = at
	for _, q := range s.quotas {
		limit, per := float64(q.Limit), float64(q.Per.Microseconds())
		if q.Window == Fixed {
			id, _ := q.window(at)
			used := max(0, q.used[q.last]-limit*float64(id-q.last))
			clear(q.used)
			q.last, q.used[id] = id, used+cost
			continue
		}
		for len(q.left) > 0 && q.left[0].last+per+s.guard <= at {
			q.sum -= q.left[0].cost
			q.left = q.left[1:]
		}
		q.sum += cost
		if n := len(q.left); n > 0 && at-q.left[n-1].first <= per/1000 && q.left[n-1].cost+cost <= limit {
			q.left[n-1].last = at
			q.left[n-1].cost += cost
			continue
		}
		for i := 0.0; i*limit < cost; i++ { // a dear job takes up windows to come
			q.left = append(q.left, entry{at + i*per, at + i*per, min(cost-i*limit, limit)})
		}
	}
}
