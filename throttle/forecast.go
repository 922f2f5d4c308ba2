package throttle

import (
	"math"
	"time"
)

// An outlook is what a forecast starts from: the keys that a job passes, from its own up
// to the root, as they stand at now.
type outlook struct {
	now    int64 // µs, the shard's time
	stages []stage
}

// A stage is one of the keys that a job passes.
type stage struct {
	policy Policy
	level  float64 // cost in the bucket at now
	out    float64 // cost released and not departed, here and below: it leaves first
	paused bool
	cool   int64     // µs instant until which it cools down, 0 none
	ramped int64     // µs instant at which its ramp began, 0 none; only with policy.Ramp
	quotas []counted // as policy.Quotas

	// share of the rate and the quotas that the job's own key gets: above 0, at most 1,
	// which it is for the key itself.
	share float64

	flight int64         // jobs in flight; only of the job's own key
	run    time.Duration // mean time that a run takes, 0 unknown; only of the job's own key
}

// counted is what a quota has counted.
type counted struct {
	window int64 // number of the fixed window that used is of, as window in calendar.lua
	used   float64
	log    []loggedCost // what left within a sliding window, oldest first; sums to used
}

type loggedCost struct {
	at   int64
	cost float64
}

// forever is the latest instant that a forecast tells of, µs after it was made.
const forever = float64(maxWait / time.Microsecond)

// A forecast foretells when the jobs of a line depart: what the scripts would do with it,
// if nothing is added before them, nothing fails and no policy changes.
//
// It plays the line through in runs: jobs of one cost that leave at even distances while
// nothing but these distances holds them. What limits them is asked, at the first job of
// a run, for the earliest instant, for the distance and for how many jobs may go on like
// that; then all of it is charged with the run. So a line behind a rate alone is one run,
// and one behind quotas a few for each of their windows. When what has passed is many
// windows of a quota, its average pace stands for it, so that the work is bounded
// whatever the length of the line; see forecast_average.go.
//
// Instants within are µs after now. Not safe for concurrent use.
type forecast struct {
	now  int64
	held bool // by a pause

	// What has left so far, and how the line goes on.
	at   float64 // instant of the last departure; nothing leaves before
	jobs int64
	cost float64
	next run

	meters    []meter
	fixed     []fixedCount
	sliding   []slidingCount // and the places in flight
	calendars []calendar
	average   average

	levels [MaxLevels]meter // where the first meters lie
}

// A run is n jobs of one cost that leave at even distances.
type run struct {
	at, every float64
	cost      float64
	n         int64
	gone      int64 // jobs of it that left, which what limits them does not know yet
}

func (r run) last() float64 { return r.at + float64(r.n-1)*r.every }

func newForecast(o outlook) *forecast {
	f := &forecast{now: o.now}
	f.meters = f.levels[:0]
	for i, s := range o.stages {
		if i == MaxLevels {
			break
		}
		f.add(s)
		if i == 0 {
			f.addPlaces(s)
		}
	}
	f.average = newAverage(f)
	return f
}

// add has a stage limit the line.
func (f *forecast) add(s stage) {
	if s.share = min(1, max(1e-6, s.share)); math.IsNaN(s.share) {
		s.share = 1
	}
	f.held = f.held || s.paused
	f.at = max(f.at, float64(s.cool-f.now))
	f.meters = append(f.meters, newMeter(s, f.now))
	guard := guardOf(s.policy.Limit)
	for i, q := range s.policy.Quotas {
		var c counted
		if i < len(s.quotas) {
			c = s.quotas[i]
		}
		if q.Window == Fixed {
			f.fixed = append(f.fixed, newFixedCount(q, c, s.out, s.share, guard, f.now))
		} else if share := float64(q.Limit) * s.share; s.share < 1 && share < fewest {
			f.meters = append(f.meters, sharedSliding(q, c, s.out, s.share, guard, f.now))
		} else {
			f.sliding = append(f.sliding, newSlidingCount(q, c, s.out, s.share, guard, f.now))
		}
	}
	if h := s.policy.Hours; h != nil {
		f.calendars = append(f.calendars, newCalendar(*h, guard, f.now))
	}
}

// guardOf is how long after its slot the scripts allow for a departure; see guard in
// quota.lua. It goes by the lead of a scheduler that was told none.
func guardOf(l Limit) float64 {
	const least, most = 2000, 1_000_000
	g := min(most, max(least, 0.8*float64(l.Period.Microseconds())/float64(l.Rate)))
	if l.Burst > 1 {
		g = max(g, float64(DefaultLead.Microseconds())/2)
	}
	return math.Ceil(g)
}

// departure foretells when a job of this cost departs that has jobs jobs of ahead cost in
// all before it in its line, not counting what is out. Calls on one forecast come with
// ahead and jobs that never fall, so a batch takes little more than its last job does.
// The answer is at most 158 years ahead, which stands for all that is later. known is
// false if only an event can tell: a pause.
func (f *forecast) departure(ahead float64, jobs int64, cost int64) (at int64, known bool) {
	if f.held {
		return f.now + int64(forever), false
	}
	c := float64(cost)
	f.average.ask()
	if f.jobs == 0 {
		f.waitForTurns(c)
	}
	f.advance(ahead-f.cost, jobs-f.jobs)
	return f.now + int64(math.Ceil(min(forever, f.first(c)-1e-3))), true
}

// waitForTurns has the first job wait for its siblings' turns: on average half of what
// its share lets it wait between two of its own.
func (f *forecast) waitForTurns(cost float64) {
	for i := range f.meters {
		f.meters[i].level += f.meters[i].turn * cost
		f.meters[i].turn = 0
	}
}

// advance has jobs of that cost in all leave, as if each had the mean of it.
func (f *forecast) advance(cost float64, jobs int64) {
	if cost <= 0 {
		return
	}
	jobs = max(1, jobs)
	mean := cost / float64(jobs)
	for left := jobs; left > 0 && f.at < forever; {
		f.plan(mean)
		n := min(left, f.next.n-f.next.gone)
		f.next.gone += n
		left -= n
	}
	f.jobs += jobs
	f.cost += cost
}

// first is when a job of that cost leaves that is at the head of the line.
func (f *forecast) first(cost float64) float64 {
	if f.jobs == 0 || f.next.cost == cost {
		f.plan(cost)
		return f.next.at + float64(f.next.gone)*f.next.every
	}
	f.settle()
	return f.earliest(cost)
}

// plan sees to it that next has a job of that cost to leave.
func (f *forecast) plan(cost float64) {
	if f.next.cost == cost && f.next.gone < f.next.n {
		return
	}
	f.settle()
	f.next = f.following(cost)
}

// settle charges all that limits the line with what has left of next.
func (f *forecast) settle() {
	if r := f.next; r.gone > 0 {
		r.n = r.gone
		f.take(r)
	}
	f.next = run{}
}
