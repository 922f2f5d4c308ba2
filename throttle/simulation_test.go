package throttle_test

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// A simulation plays schedulers and workers of one shard against the real scripts on
// a driven clock: it jumps from one instant at which something happens to the next,
// so hours of pace take seconds and every slot is exact.
type simulation struct {
	t require.TestingT
	d *driven

	lead, lease, poll time.Duration
	schedulers        int
	latency           func() time.Duration                           // from release to the worker's call
	work              time.Duration                                  // from a job's slot to the end of its run
	told              time.Duration                                  // ends of runs are told at multiples of it; 0: at once
	end               func(departure) (what string, d time.Duration) // how a run ends; nil: all are done
	cost              func(departure) int64                          // what a run truly cost; nil: what it was charged
	miss              func() bool                                    // whether a job misses its slot; nil: none does
	ignored           string                                         // pool without workers

	now     time.Time     // true time; the server's clock may be off by skew
	skew    time.Duration // see jump
	agenda  agenda
	events  int
	wakes   int
	looks   []int // by scheduler: which of its appointments counts
	stopped bool  // workers take nothing up
	down    bool  // schedulers do nothing
	transit [][]script.Released
	costs   map[string]int64 // by key and id
	open    int              // jobs that have not ended

	released   map[string][]string // ids by key, in order
	departures []departure
	releases   int // calls
	parked     int
}

// A departure is one run of a job, at its slot in true time.
type departure struct {
	throttletest.Event
	job     string // id
	attempt int64
	hold    script.Hold
}

func newSimulation(t require.TestingT, d *driven) *simulation {
	return &simulation{
		t: t, d: d, now: d.now, lead: throttle.DefaultLead, lease: 10 * time.Second, poll: 30 * time.Second, schedulers: 1,
		latency: func() time.Duration { return 2 * time.Millisecond },
		costs:   make(map[string]int64), released: make(map[string][]string),
	}
}

// enqueue puts jobs in, in script calls of the size that a Queue uses.
func (s *simulation) enqueue(jobs ...script.Entry) {
	for len(jobs) > 0 {
		n := min(128, len(jobs))
		for _, e := range jobs[:n] {
			s.costs[e.Key+" "+e.ID] = e.Cost
			s.open++
		}
		s.call(s.d.scripts.Enqueue(0, -1, jobs[:n]))
		jobs = jobs[n:]
	}
}

// put puts jobs in through a Queue. Its receipts tell which of them are new.
func (s *simulation) put(jobs ...throttle.Job) (receipts []throttle.Receipt) {
	s.do(func(q *throttle.Queue) {
		var err error
		receipts, err = q.EnqueueMany(context.Background(), jobs)
		require.NoError(s.t, err)
	})
	for i, r := range receipts {
		if !r.Duplicate && r.State != throttle.Dropped {
			s.open++
			s.costs[r.Key+" "+r.ID] = max(1, jobs[i].Cost)
		}
		if r.Displaced != "" {
			s.open--
		}
	}
	return receipts
}

// do acts through a Queue at the present instant, and the schedulers hear its wake-up.
func (s *simulation) do(what func(q *throttle.Queue)) {
	s.present()
	what(s.d.queue(s.t))
	s.hear()
}

// call makes a call at the present instant, and the schedulers hear its wake-up.
func (s *simulation) call(c *script.Call) *script.Call {
	s.present()
	s.d.run(s.t, c)
	s.hear()
	return c
}

func (s *simulation) present() {
	if at := s.now.Add(s.skew); !at.Equal(s.d.now) {
		s.d.set(s.t, at)
	}
}

func (s *simulation) hear() {
	if n := s.d.wakes(s.t); n != s.wakes {
		s.wakes = n
		for i := range s.looks {
			s.look(i, s.now)
		}
	}
}

// jump moves the server's clock and nothing else.
func (s *simulation) jump(by time.Duration) { s.skew += by }

// until lets everything happen up to an instant.
func (s *simulation) until(end time.Time) {
	if s.looks == nil {
		s.looks = make([]int, s.schedulers)
		for i := range s.looks {
			s.look(i, s.now)
		}
	}
	for len(s.agenda) > 0 && !s.agenda[0].at.After(end) {
		s.step()
	}
	s.now = end
}

func (s *simulation) forward(d time.Duration) { s.until(s.now.Add(d)) }

// drain lets everything happen until all jobs have ended, which must be within d.
func (s *simulation) drain(d time.Duration) {
	end := s.now.Add(d)
	for s.open > 0 {
		s.until(s.now)
		if s.open > 0 && len(s.agenda) > 0 {
			require.False(s.t, s.agenda[0].at.After(end), "%d jobs are left after %v", s.open, d)
			s.step()
		}
	}
}

func (s *simulation) step() {
	next := heap.Pop(&s.agenda).(event)
	s.now = next.at
	next.what()
}

func (s *simulation) at(when time.Time, what func()) {
	s.events++
	if when.Before(s.now) {
		when = s.now
	}
	heap.Push(&s.agenda, event{at: when, order: s.events, what: what})
}

// look has a scheduler look at the shard at an instant, and at none that was agreed
// on before.
func (s *simulation) look(scheduler int, when time.Time) {
	s.looks[scheduler]++
	appointment := s.looks[scheduler]
	s.at(when, func() {
		if s.looks[scheduler] == appointment {
			s.release(scheduler)
		}
	})
}

func (s *simulation) release(scheduler int) {
	if s.down {
		s.look(scheduler, s.now.Add(s.poll))
		return
	}
	s.releases++
	token := strconv.Itoa(s.releases)
	round := s.call(s.d.scripts.Release(0, script.Releasing{
		Lead: s.lead.Microseconds(), Lease: s.lease.Microseconds(), Most: 256,
		Round: token, Scheduler: strconv.Itoa(scheduler), Token: token,
	})).Released()
	next, jobs := round.Due, round.Jobs
	s.open -= len(round.Expired)
	for _, j := range jobs {
		s.released[j.Key] = append(s.released[j.Key], j.ID)
	}
	jobs = slices.DeleteFunc(jobs, func(j script.Released) bool { return j.Pool == s.ignored })
	for len(jobs) > 0 {
		n := min(throttle.ParcelSize, len(jobs))
		parcel := jobs[:n:n]
		jobs = jobs[n:]
		s.at(s.now.Add(s.latency()), func() { s.arrive(parcel) })
	}
	wait := s.poll
	if next >= 0 {
		wait = min(wait, time.Duration(next)*time.Microsecond)
	}
	s.look(scheduler, s.now.Add(wait))
}

// stop has the workers take nothing up until they start.
func (s *simulation) stop() { s.stopped = true }

func (s *simulation) start() {
	s.stopped = false
	for _, parcel := range s.transit {
		s.arrive(parcel)
	}
	s.transit = nil
}

func (s *simulation) arrive(parcel []script.Released) {
	if s.stopped {
		s.transit = append(s.transit, parcel)
		return
	}
	s.depart(holds(parcel))
}

func (s *simulation) depart(jobs []script.Hold) {
	s.events++
	call := s.d.scripts.Depart(0, s.lead.Microseconds(), s.lease.Microseconds(), strconv.Itoa(s.events), jobs)
	now, slots := s.call(call).Slots()
	require.Len(s.t, slots, len(jobs))
	due := make(map[time.Time][]script.End) // runs that end together are told together
	var order []time.Time
	for i, slot := range slots {
		h := jobs[i]
		if slot.Status != script.Go {
			s.parked++
			continue
		}
		h.Run = slot.Run
		at := s.now.Add(time.Duration(slot.At-now) * time.Microsecond)
		if s.miss != nil && s.miss() {
			s.at(at.Add(s.lead/10), func() { s.depart([]script.Hold{h}) })
			continue
		}
		d := departure{
			Event: throttletest.Event{Key: h.Key, ID: fmt.Sprintf("%s#%d", h.ID, slot.Run), At: at, Cost: s.costs[h.Key+" "+h.ID]},
			job:   h.ID, attempt: slot.Attempt, hold: h,
		}
		s.departures = append(s.departures, d)
		e := script.End{Hold: h, What: script.Done}
		if s.end != nil {
			var delay time.Duration
			e.What, delay = s.end(d)
			e.Delay = delay.Microseconds()
		}
		if e.What == script.Retry || e.What == script.Dead {
			e.Reason = "because of this"
		}
		if s.cost != nil {
			e.Cost, e.Settled = s.cost(d), true
		}
		over := at.Add(s.work)
		if s.told > 0 {
			over = over.Add(s.told - 1).Truncate(s.told)
		}
		if due[over] == nil {
			order = append(order, over)
		}
		due[over] = append(due[over], e)
	}
	for _, over := range order {
		s.at(over, func() { s.finish(due[over]) })
	}
}

func (s *simulation) finish(ends []script.End) {
	held := s.call(s.d.scripts.Finish(0, s.lead.Microseconds(), ends)).Held()
	for i, e := range ends {
		if held[i] && (e.What == script.Done || e.What == script.Dead) {
			s.open--
		}
	}
}

// slots are the instants at which jobs of a key left, counted from an instant.
func (s *simulation) slots(key string, from time.Time) []time.Duration {
	var out []time.Duration
	for _, d := range s.departures {
		if d.Key == key {
			out = append(out, d.At.Sub(from))
		}
	}
	return out
}

// jobs are the ids of a key's departures in order.
func (s *simulation) jobs(key string) []string {
	var out []string
	for _, d := range s.departures {
		if d.Key == key {
			out = append(out, d.job)
		}
	}
	return out
}

// measure reports on keys, which all have the same limit.
func (s *simulation) measure(l throttle.Limit, keys ...string) throttletest.Reports {
	limits := make(map[string]throttle.Limit)
	for _, k := range keys {
		limits[k] = l
	}
	var events []throttletest.Event
	for _, d := range s.departures {
		if _, ok := limits[d.Key]; ok {
			events = append(events, d.Event)
		}
	}
	reports, err := throttletest.Measure(limits, events, nil)
	require.NoError(s.t, err)
	return reports
}

// keepsLimit checks the departures of keys: none too early, by more than the
// rounding of slots to whole microseconds.
func (s *simulation) keepsLimit(l throttle.Limit, keys ...string) {
	rounding := float64(l.Rate) / float64(l.Period.Microseconds())
	require.NoError(s.t, s.measure(l, keys...).Check(throttletest.Bounds{MaxExcess: rounding}))
}

// An event is something that happens at an instant; order decides between equals.
type event struct {
	at    time.Time
	order int
	what  func()
}

type agenda []event

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].order < a[j].order
}
func (a *agenda) Push(e any) { *a = append(*a, e.(event)) }

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	*a = (*a)[:last]
	return e
}

func sortByTime(departures []departure) {
	slices.SortStableFunc(departures, func(a, b departure) int { return a.At.Compare(b.At) })
}
