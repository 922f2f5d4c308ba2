package throttle

import "math"

// most stands for every larger number of jobs.
const most = 1 << 60

// mostRounds is how often hours and windows are asked in turn for an instant that suits
// all. If there is none by then, there may be none at all: hours that do not overlap.
const mostRounds = 4096

// tooLittle is cost that a sum of rounded numbers may be off by.
const tooLittle = 1e-6

// slack is how far apart two instants may be that would be the same if float64 were
// exact.
func slack(at float64) float64 { return 0.01 + at*1e-14 }

// whole is the number of jobs that fit, where x may be off by rounding.
func whole(x float64) int64 { return floor(x + tooLittle) }

func floor(x float64) int64 {
	if x >= most {
		return most
	}
	return int64(math.Floor(x))
}

// until is how many jobs of a run leave until an instant, and at it if that is included.
func (r run) until(end float64, included bool) int64 {
	if r.every <= 0 {
		return most
	}
	if included {
		return floor((end-r.at+slack(end))/r.every) + 1
	}
	return floor(math.Ceil((end - r.at - slack(end)) / r.every))
}

// earliest is when a job of that cost may leave that is at the head of the line.
func (f *forecast) earliest(cost float64) float64 {
	at := f.at
	for i := range f.meters {
		at = max(at, f.meters[i].earliest(cost))
	}
	for i := range f.sliding {
		at = max(at, f.sliding[i].earliest(cost))
	}
	at = max(at, f.average.next)
	if len(f.fixed) == 0 && len(f.calendars) == 0 {
		return at
	}
	for range mostRounds {
		before := at
		for i := range f.calendars {
			at = f.calendars[i].earliest(at)
		}
		for i := range f.fixed {
			at = f.fixed[i].earliest(at, cost)
		}
		if at == before || at >= forever {
			return at
		}
	}
	return forever
}

// following is the run that comes next in a line of jobs of that cost.
func (f *forecast) following(cost float64) run {
	f.average.step()
	at := f.earliest(cost)
	if at >= f.average.due && f.simplify(at, cost) {
		at = f.earliest(cost)
	}
	r := run{at: at, every: cost * f.average.pace, cost: cost, n: most}
	if at >= forever {
		return r
	}
	for i := range f.meters {
		r.every = max(r.every, f.meters[i].distance(at, cost))
	}
	for i := range f.sliding {
		r.every = max(r.every, f.sliding[i].distance(at, cost))
	}
	for i := range f.meters {
		r.n = min(r.n, f.meters[i].most(r))
	}
	for i := range f.sliding {
		r.n = min(r.n, f.sliding[i].most(r))
	}
	for i := range f.fixed {
		r.n = min(r.n, f.fixed[i].most(r))
	}
	for i := range f.calendars {
		r.n = min(r.n, f.calendars[i].most(r))
	}
	r.n = max(1, r.n)
	return r
}

// take charges all that limits the line with a run.
func (f *forecast) take(r run) {
	f.at = r.last()
	if f.at >= forever {
		return
	}
	for i := range f.meters {
		f.meters[i].take(r)
	}
	for i := range f.fixed {
		f.fixed[i].take(r)
	}
	for i := range f.sliding {
		q := &f.sliding[i]
		q.take(r, len(q.log)-q.gone > mostEntries)
	}
	f.average.take(r)
}
