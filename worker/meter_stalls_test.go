package worker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// process is a worker process with one meter, whose clock stands still at times.
type process struct {
	*meter
	now    time.Time
	stalls []stall
	late   func() time.Duration // of timers
}

type stall struct{ from, to time.Duration }

// pacing runs processes against one bucket, by a made-up clock.
type pacing struct {
	limit     throttle.Limit
	bucket    throttle.Bucket
	processes []*process
	left      []throttletest.Event
}

func newPacing(l throttle.Limit, late func() time.Duration, stalls ...[]stall) *pacing {
	p := &pacing{limit: l, bucket: throttle.Bucket{Limit: l, At: noon}}
	for _, s := range stalls {
		p.processes = append(p.processes, &process{meter: newMeter(lead, nil, nil), now: noon, stalls: s, late: late})
	}
	return p
}

// depart gives jobs slots as the stored bucket does.
func (p *pacing) depart(now time.Time, jobs ...*held) {
	for _, h := range jobs {
		h.limit = p.limit
		h.slot = now.Add(p.bucket.Wait(now, float64(h.job.Cost)))
		p.bucket.Take(now, float64(h.job.Cost))
	}
}

// wake moves the clock of a process on, past the stalls that it falls into.
func (w *process) wake(now time.Time) {
	w.now = now.Add(w.late())
	for _, s := range w.stalls {
		if w.now.After(after(s.from)) && w.now.Before(after(s.to)) {
			w.now = after(s.to)
		}
	}
}

// step lets the process do one thing and returns when it goes on; ok is false when
// it waits for jobs.
func (p *pacing) step(w *process) (ok bool) {
	h, missed, wait := w.next(w.now)
	switch {
	case h != nil:
		p.left = append(p.left, throttletest.Event{Key: "k", ID: strconv.FormatInt(h.order, 10), At: w.now, Cost: h.job.Cost})
	case len(missed) > 0:
		w.wake(w.now.Add(300 * time.Microsecond)) // the round trip
		p.depart(w.now, missed...)
		w.add(missed, len(missed))
	case wait == forever:
		return false
	default:
		w.wake(w.now.Add(wait))
	}
	return true
}

// run brings all jobs out. Each is released a lead before its slot, to the
// processes in turn.
func (p *pacing) run(jobs []*held) {
	for {
		w := p.earliest()
		for len(jobs) > 0 && p.bucket.Wait(w.now, float64(jobs[0].job.Cost)) <= lead {
			to := p.processes[len(jobs)%len(p.processes)]
			to.now = later(to.now, w.now)
			p.depart(w.now, jobs[0])
			to.add(jobs[:1], 0)
			jobs = jobs[1:]
		}
		if p.step(w) {
			continue
		}
		// Its clock goes on with the others', or to the next release.
		w.wake(w.now.Add(lead / 10))
		if len(jobs) == 0 && !slices.ContainsFunc(p.processes, func(w *process) bool { return !w.idle() }) {
			return
		}
	}
}

func (p *pacing) earliest() *process {
	return slices.MinFunc(p.processes, func(a, b *process) int { return a.now.Compare(b.now) })
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func line(costs ...int64) (jobs []*held, ids []string) {
	for i, cost := range costs {
		h := &held{order: int64(i + 1)}
		h.job.Cost = cost
		jobs, ids = append(jobs, h), append(ids, strconv.Itoa(i+1))
	}
	return jobs, ids
}

func (p *pacing) report(t interface{ Fatalf(string, ...any) }, ids []string) throttletest.Report {
	reports, err := throttletest.Measure(map[string]throttle.Limit{"k": p.limit}, p.left, map[string][]string{"k": ids})
	if err != nil {
		t.Fatalf("measure: %v", err)
	}
	return reports[0]
}

func TestStallLosesItsOwnLengthAndNoMore(t *testing.T) {
	for _, c := range []struct {
		limit string
		jobs  int
		stall time.Duration
	}{
		{"10/s", 40, time.Second}, {"10/s", 40, 70 * time.Millisecond}, {"20/s", 60, 320 * time.Millisecond},
		{"100/s", 300, 55 * time.Millisecond}, {"100/s", 300, 2 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v at %s", c.stall, c.limit), func(t *testing.T) {
			l := mustLimit(t, c.limit, 1)
			onTime := func() time.Duration { return 0 }
			p := newPacing(l, onTime, []stall{{time.Second, time.Second + c.stall}})
			jobs, ids := line(slices.Repeat([]int64{1}, c.jobs)...)
			p.run(jobs)
			r := p.report(t, ids)
			require.NoError(t, r.Check(throttletest.Bounds{MaxExcess: 0.8, Ordered: true}))
			whole := time.Duration(c.jobs-1) * l.Interval()
			require.LessOrEqual(t, r.Span, whole+c.stall+2*l.Interval())
		})
	}
}

// Whatever stalls there are, no window holds a whole job above the bound, no job is
// lost and none overtakes another.
func TestMetersKeepTheLimitThroughStalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]int64{2, 5, 10, 20, 50, 100, 150}).Draw(t, "rate")
		processes := rapid.IntRange(1, 3).Draw(t, "processes")
		l := throttle.Limit{Rate: rate, Period: time.Second, Burst: 1}
		if processes == 1 { // with several, a burst that one is late with adds to what the others send
			l.Burst = rapid.Int64Range(1, 20).Draw(t, "burst")
		}
		costs := slices.Repeat([]int64{1}, 60)
		mixed := rapid.Bool().Draw(t, "mixed")
		if mixed {
			costs = rapid.SliceOfN(rapid.Int64Range(1, 5), 60, 60).Draw(t, "costs")
		}
		ms := rapid.IntRange(0, 3000)
		var stalls [][]stall
		for range processes {
			var list []stall
			for range rapid.IntRange(0, 5).Draw(t, "stalls") {
				from := time.Duration(ms.Draw(t, "from")) * time.Millisecond
				list = append(list, stall{from, from + time.Duration(ms.Draw(t, "length"))*time.Millisecond})
			}
			slices.SortFunc(list, func(a, b stall) int { return int(a.from - b.from) })
			stalls = append(stalls, list)
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		late := func() time.Duration { return time.Duration(random.Int64N(int64(1500 * time.Microsecond))) }

		p := newPacing(l, late, stalls...)
		jobs, ids := line(costs...)
		p.run(jobs)
		bounds := throttletest.Bounds{MaxExcess: 1, Ordered: processes == 1 && !mixed}
		if err := p.report(t, ids).Check(bounds); err != nil {
			t.Fatalf("%v", err)
		}
	})
}
