package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// A meter lets the jobs of one key leave at their slots, in the order they came.
//
// Slots are exact, machines are not: a process that stalls past several slots must
// not send their jobs together when it goes on. So the meter also measures its own
// departures with a bucket of the key's limit, and a job that is too late for its
// slot, by its own stall or because the meter spaces it, gives the slot up and
// departs again. Capacity is lost only for as long as the stall took it away.
type meter struct {
	lead   time.Duration
	start  func(*held)   // lets a job leave; returns at once
	again  func([]*held) // has jobs depart again
	signal chan struct{} // holds one message: something changed

	mu     sync.Mutex
	jobs   []*held // with their slots, both ascending unless costs differ
	mixed  bool    // costs differ: a job keeps the slot that was charged for it
	away   int     // jobs that gave up their slots and have no answer yet
	bucket throttle.Bucket
	last   time.Time // departure

	parents *parents // nil if there are none
	parent  *parent  // that the jobs leave through, nil without one
}

func newMeter(lead time.Duration, start func(*held), again func([]*held)) *meter {
	return &meter{lead: lead, start: start, again: again, signal: make(chan struct{}, 1)}
}

// add takes jobs that were given slots; returned counts those among them, and those
// that got none, that had been away.
func (m *meter) add(jobs []*held, returned int) {
	m.mu.Lock()
	m.away -= returned
	for _, h := range jobs {
		m.bucket.Limit = h.limit
		m.parent = m.parents.exchange(m.parent, h.parent, h.parentLimit)
		if n := len(m.jobs); n > 0 {
			last := m.jobs[n-1]
			m.mixed = m.mixed || last.job.Cost != h.job.Cost
			m.jobs = append(m.jobs, h)
			if h.order < last.order || h.slot.Before(last.slot) {
				m.arrange()
			}
		} else {
			m.mixed = false
			m.jobs = append(m.jobs, h)
		}
	}
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// arrange puts jobs and slots in order. Slots of equal cost are as good as each
// other, so the job that came first gets the earliest.
func (m *meter) arrange() {
	if m.mixed {
		slices.SortStableFunc(m.jobs, func(a, b *held) int { return a.slot.Compare(b.slot) })
		return
	}
	slots := make([]time.Time, len(m.jobs))
	for i, h := range m.jobs {
		slots[i] = h.slot
	}
	slices.SortFunc(slots, time.Time.Compare)
	slices.SortFunc(m.jobs, func(a, b *held) int { return int(a.order - b.order) })
	for i, h := range m.jobs {
		h.slot = slots[i]
	}
}

// A process' departures may run ahead of the exact pace by slack of one cost unit:
// room for timers and stalls. What is left of the one unit that a receiver may see
// above the bound is for the network: 6 ms, and at least a fifth.
const (
	networkJitter = 6 * time.Millisecond
	mostSlack     = 0.8
	leastSlack    = 0.25
)

// interval is the time one cost unit takes to leak.
func (m *meter) interval() time.Duration { return m.bucket.Limit.Interval() }

func (m *meter) slack() float64 { return slack(m.interval()) }

func slack(interval time.Duration) float64 {
	return min(mostSlack, max(leastSlack, 1-float64(networkJitter)/float64(interval)))
}

const (
	leastTolerance = 2 * time.Millisecond // timers are not better than that
	mostTolerance  = time.Second          // well within any lease
)

// tolerance is how late a job may leave on its slot. Within it, departures of any
// number of processes stay within slack of the bound in a steady flow. A burst
// leaves room for more, which is used up to half a lead.
func (m *meter) tolerance() time.Duration {
	t := time.Duration(m.slack() * float64(m.interval()))
	if room := float64(m.bucket.Limit.Burst-1) * float64(m.interval()); room > 0 {
		t = max(t, min(m.lead/2, t+time.Duration(min(room, float64(m.lead)))))
	}
	if m.parent != nil { // its siblings may be late together
		above := m.parent.interval()
		t = min(t, time.Duration(slack(above)*float64(above)))
	}
	return min(mostTolerance, max(leastTolerance, t))
}

// run lets jobs leave until there are none left and gone agrees, or stop closes.
func (m *meter) run(stop <-chan struct{}, gone func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		h, missed, wait := m.next(time.Now())
		switch {
		case h != nil:
			m.start(h)
			continue
		case len(missed) > 0:
			m.again(missed)
			continue
		case wait == forever && gone():
			return
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-m.signal:
		case <-stop:
			return
		}
	}
}

const forever = time.Duration(1<<63 - 1)

// mostRest bounds the time that a meter is kept for what it remembers, after its last
// departure.
const mostRest = 10 * time.Second

// rest is how long a meter without jobs is to be kept: until its bucket is empty, if
// its jobs may be so late that their slots alone do not keep the bound; then forever.
func (m *meter) rest(now time.Time) time.Duration {
	if m.bucket.Level > 0 && float64(m.tolerance()) > m.slack()*float64(m.interval()) {
		empty := m.bucket.Wait(now, float64(m.bucket.Limit.Burst))
		if d := min(empty, mostRest-now.Sub(m.last)); d > 0 {
			return d
		}
	}
	return forever
}

// next returns a job that leaves now, or jobs that missed their slots, or how long
// to wait.
func (m *meter) next(now time.Time) (h *held, missed []*held, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.away > 0:
		return nil, nil, forever
	case len(m.jobs) == 0:
		return nil, nil, m.rest(now)
	}
	h = m.jobs[0]
	if h.slot.After(now) {
		return nil, nil, h.slot.Sub(now)
	}
	at := now.Add(m.bucket.Wait(now, float64(h.job.Cost)-m.slack()))
	switch {
	case at.Sub(h.slot) > m.tolerance():
		return nil, m.miss(now), 0
	case at.After(now):
		return nil, nil, at.Sub(now)
	}
	if h.booked.IsZero() {
		var booked bool
		if h.booked, booked = m.parent.book(now, h.slot.Add(m.tolerance()), float64(h.job.Cost)); !booked {
			h.booked = time.Time{}
			return nil, m.miss(now), 0
		}
	}
	if h.booked.After(now) {
		return nil, nil, h.booked.Sub(now)
	}
	m.bucket.Take(now, float64(h.job.Cost))
	h.departed, m.last = now, now
	m.jobs = m.jobs[1:]
	return h, nil, 0
}

// miss takes out the jobs that must depart again: as many as slots were missed. The
// slots that are left go to the jobs that came first.
func (m *meter) miss(now time.Time) []*held {
	late := now.Add(-m.tolerance())
	n := 1 // the head is late even if only the meter made it so
	for n < len(m.jobs) && m.jobs[n].slot.Before(late) {
		n++
	}
	var missed []*held
	if m.mixed {
		missed = slices.Clone(m.jobs[:n])
		m.jobs = m.jobs[n:]
	} else {
		keep := len(m.jobs) - n
		for i := range keep {
			m.jobs[i].slot = m.jobs[i+n].slot
		}
		missed = slices.Clone(m.jobs[keep:])
		m.jobs = m.jobs[:keep]
	}
	for _, h := range missed {
		h.booked = time.Time{}
	}
	m.away += len(missed)
	return missed
}

// credit takes cost out of the bucket: less was used than was measured.
func (m *meter) credit(cost float64) {
	m.mu.Lock()
	m.bucket.Level = max(0, m.bucket.Level-cost)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// idle tells whether the meter has nothing left to do.
func (m *meter) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.jobs) == 0 && m.away == 0
}

// retire lets go of what the meter shares with others.
func (m *meter) retire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parent = m.parents.exchange(m.parent, "", throttle.Limit{})
}

// empty takes out all jobs.
func (m *meter) empty() []*held {
	m.mu.Lock()
	defer m.mu.Unlock()
	jobs := m.jobs
	m.jobs = nil
	return jobs
}
