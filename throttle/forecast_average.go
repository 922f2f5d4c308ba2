package throttle

import "math"

// When a forecast gives up details: not before it has taken so many steps, beyond some for
// each call, and half as patiently after each many more; and not before so many windows of
// a quota have passed (or runs, of the places in flight). What an average is off by, at
// most about half a window, is little of a wait that long. Within hours a job more or less
// before they end is a night of waiting, so there it takes more steps, and for those of the
// hours themselves so many weeks; more if there are quotas that last longer.
const (
	fewSteps, manySteps = 1024, 2048
	stepsPerCall        = 2

	manyWindows         = 256
	manyWeeks, evenMore = 128, 2048
)

// How an average is measured: over so many windows after as many that settle it, or
// weeks; and with so many runs at least and at most.
const (
	settlingWindows, measuredWindows = 32, 64
	settlingWeeks, measuredWeeks     = 2, 52
	fewestRuns, allRuns              = 64, 1024
)

// A quota counts for its average pace within hours if an opening has so many windows of
// it. What the last one of an opening leaves over is in the average.
const windowsPerOpening = 16

// An average is what stands for the quotas, and at last the hours, that a forecast does
// not play through any more: a time between jobs.
type average struct {
	pace float64 // µs for a cost unit, 0 for none
	next float64 // no job leaves before
	due  float64 // when there is something to be simplified

	steps    int     // taken
	spare    int     // of this call's, that do not count
	tires    int     // when so many are
	patience float64 // part of the windows that are worth the work; infinite at first
	opening  float64 // an opening's length on average, 0 without hours
	weeks    float64 // that are worth the work
}

func newAverage(f *forecast) average {
	a := average{patience: math.Inf(1), tires: fewSteps, due: math.Inf(1)}
	for i := range f.calendars {
		a.tires = manySteps
		if open := f.calendars[i].perOpening(); a.opening == 0 || open < a.opening {
			a.opening = open
		}
	}
	return a
}

func (a *average) ask() { a.spare = stepsPerCall }

// step counts a run. Every so many halve the patience with details.
func (a *average) step() {
	if a.spare > 0 {
		a.spare--
		return
	}
	if a.steps++; a.steps == a.tires {
		a.patience = max(1./16, min(1, a.patience/2))
		a.tires += manySteps
		a.due = 0
	}
}

func (a *average) take(r run) {
	if a.pace > 0 {
		a.next = r.last() + r.cost*a.pace
	}
}

// simple is until when a window is played through: it may never be.
func (a *average) simple(span float64) float64 {
	week := float64(usPerWeek)
	switch {
	case span*(settlingWindows+measuredWindows)*2 > forever:
		return math.Inf(1)
	case a.opening == 0 || span*windowsPerOpening <= a.opening:
		return span * manyWindows * a.patience
	case span <= week:
		return week * a.weeks * a.patience
	}
	return math.Inf(1)
}

// nextDue is when the next one of the details is due to be simplified.
func (f *forecast) nextDue(cost float64) float64 {
	a, due := &f.average, math.Inf(1)
	a.weeks = manyWeeks
	f.eachSpan(cost, func(span float64) {
		if span > float64(usPerWeek) {
			a.weeks = evenMore
		}
	})
	f.eachSpan(cost, func(span float64) { due = min(due, a.simple(span)) })
	return due
}

// eachSpan tells how long the windows last, and a week if there are hours.
func (f *forecast) eachSpan(cost float64, tell func(span float64)) {
	if len(f.calendars) > 0 {
		tell(float64(usPerWeek))
	}
	for i := range f.fixed {
		tell(f.fixed[i].takes(cost))
	}
	for i := range f.sliding {
		tell(f.sliding[i].takes(cost))
	}
}

// simplify has an average stand for what is due at an instant. True if there was something.
func (f *forecast) simplify(at, cost float64) bool {
	a := &f.average
	if f.jobs > 0 {
		cost = f.cost / float64(f.jobs)
	}
	a.due = f.nextDue(cost)
	if at < a.due {
		return false
	}
	longest := 0.0 // of what is due
	f.eachSpan(cost, func(span float64) {
		if a.simple(span) <= at {
			longest = max(longest, span)
		}
	})
	a.pace, a.next = f.measure(longest, cost), at
	f.drop(longest, cost)
	a.due = f.nextDue(cost)
	return true
}

// drop leaves away what is no longer than span.
func (f *forecast) drop(span, cost float64) {
	keep := f.fixed[:0]
	for _, w := range f.fixed {
		if w.takes(cost) > span {
			keep = append(keep, w)
		}
	}
	f.fixed = keep
	left := f.sliding[:0]
	for _, q := range f.sliding {
		if q.takes(cost) > span {
			left = append(left, q)
		}
	}
	f.sliding = left
	if span >= float64(usPerWeek) {
		f.calendars, f.average.opening = nil, 0
	}
}

// measure is the time that a cost unit takes on average by what is no longer than span.
func (f *forecast) measure(span, cost float64) float64 {
	all := f.idle(span, cost, true).paceOf(span, cost)
	rate := 0.0
	for i := range f.meters {
		rate = max(rate, 1/f.meters[i].rate)
	}
	if all > rate*1.0005 {
		return all
	}
	// The rate alone holds them: the bucket goes on to see to it, and to bursts.
	return f.idle(span, cost, false).paceOf(span, cost)
}

// idle is a forecast of the same limits from idle, with the windows that are no longer
// than span, and with or without the rates.
func (f *forecast) idle(span, cost float64, rates bool) *forecast {
	g := &forecast{now: f.now}
	g.calendars = append(g.calendars, f.calendars...)
	if len(g.calendars) > 0 {
		g.at = g.calendars[0].nextOpening(0)
	}
	if rates {
		for _, m := range f.meters {
			g.meters = append(g.meters, meter{rate: m.rate, burst: m.burst, at: g.at})
		}
	}
	for _, w := range f.fixed {
		if w.takes(cost) <= span {
			w.used, w.id = 0, 0
			g.fixed = append(g.fixed, w)
		}
	}
	for _, q := range f.sliding {
		if q.takes(cost) <= span {
			q.used, q.log, q.gone = 0, nil, 0
			g.sliding = append(g.sliding, q)
		}
	}
	g.average.pace, g.average.next, g.average.due = f.average.pace, g.at, math.Inf(1)
	return g
}

// paceOf plays a line of such jobs through until the time that a cost unit takes is clear.
func (f *forecast) paceOf(span, cost float64) float64 {
	if len(f.calendars) > 0 && span < float64(usPerWeek) {
		return f.paceWithin(cost)
	}
	settling, measured := settlingWindows*span, measuredWindows*span
	if len(f.calendars) > 0 {
		settling, measured = settlingWeeks*span, measuredWeeks*span
	}
	from := f.at + settling
	var line trend
	for runs := 0; runs < allRuns; runs++ {
		r := f.following(cost)
		switch {
		case r.n == most:
			return r.every / cost
		case r.at >= forever:
			return line.slope() / cost
		}
		f.take(r)
		if line.runs == 0 && (r.at < from || runs < fewestRuns/2) && runs < allRuns/4 {
			continue
		}
		line.add(r)
		if r.at > line.begin+measured && line.runs > fewestRuns {
			break
		}
	}
	return line.slope() / cost
}

// paceWithin is paceOf while it is open, by what leaves in the openings of a week. Each
// one begins with a job: half a distance too early, on average.
func (f *forecast) paceWithin(cost float64) float64 {
	end, until := f.at+float64(usPerWeek), 0.0
	open, jobs := 0.0, 0.0
	for runs := 0; ; runs++ {
		r := f.following(cost)
		if r.n == most {
			return r.every / cost
		}
		if r.at >= end || runs == allRuns {
			open -= max(0, until-min(end, r.at))
			break
		}
		closes := math.Inf(1)
		for i := range f.calendars {
			closes = min(closes, f.calendars[i].until)
		}
		if closes != until {
			open += closes - r.at
			jobs -= 0.5
			until = closes
		}
		jobs += float64(r.n)
		f.take(r)
	}
	return max(0, open) / max(0.5, jobs) / cost
}

// A trend is a line laid through instants of departures.
type trend struct {
	runs         int
	begin        float64
	n            float64 // jobs
	x, y, xx, xy float64 // sums of their numbers and instants, and of products
}

func (t *trend) add(r run) {
	if t.runs == 0 {
		t.begin = r.at
	}
	t.runs++
	n := float64(r.n)
	x, y := t.n+(n-1)/2, (r.at+r.last())/2-t.begin
	spread := n * (n*n - 1) / 12
	t.n += n
	t.x += n * x
	t.y += n * y
	t.xx += n*x*x + spread
	t.xy += n*x*y + r.every*spread
}

// slope is the time from one job to the next, 0 if there are too few.
func (t *trend) slope() float64 {
	spread := t.n*t.xx - t.x*t.x
	if spread <= 0 {
		return 0
	}
	return max(0, (t.n*t.xy-t.x*t.y)/spread)
}
