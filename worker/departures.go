package worker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// departures claims slots for admitted jobs and hands the jobs to the meters of
// their keys.
type departures struct {
	permits *throttle.Permits
	config  Config
	shards  []*batcher[*held]
	start   func(*held)
	settle  func(*held, verdict) // ends a run
	drop    func(*held, Outcome) // lets go of a job that Redis took back already
	stop    chan struct{}        // meters stop: what they hold goes back

	mu     sync.Mutex
	closed bool
	meters map[string]*meter
	cooled map[string]time.Time // keys that were told to rest of late, and when
	pruned time.Time            // when those of earlier were let go
	active sync.WaitGroup

	parents parents
}

// departBatch bounds the jobs of one call: what Redis does in about a millisecond.
const departBatch = 128

func newDepartures(s *Server) *departures {
	d := &departures{
		permits: s.permits, config: s.config, start: s.start, settle: s.settle, drop: s.drop,
		stop:   make(chan struct{}),
		meters: make(map[string]*meter),
		cooled: make(map[string]time.Time),
	}
	for range s.permits.Shards() {
		var token string
		d.shards = append(d.shards, newBatcher(departBatch, func(ctx context.Context, jobs []*held) error {
			return d.call(ctx, &token, jobs)
		}))
	}
	return d
}

// ask has jobs depart.
func (d *departures) ask(jobs []*held) {
	for _, h := range jobs {
		d.shards[h.hold.Shard].add(h)
	}
}

// call departs jobs of one shard. It is repeated with the same token until it is
// answered, so an answer that was lost charges nothing twice.
func (d *departures) call(ctx context.Context, token *string, jobs []*held) error {
	if *token == "" {
		*token = d.permits.NewToken()
	}
	holds := make([]throttle.Hold, len(jobs))
	for i, h := range jobs {
		holds[i] = h.move()
	}
	asked := time.Now()
	permits, err := d.permits.Depart(ctx, d.config.Lease, *token, holds)
	if err != nil {
		d.config.Logger.Warn("depart failed", "jobs", len(jobs), "error", err)
		return err
	}
	*token = ""
	granted := make(map[string][]*held)
	returned := make(map[string]int)
	for i, p := range permits {
		h := jobs[i]
		key := h.hold.Key
		if holds[i].Run > 0 {
			returned[key]++
		}
		h.attempt, h.limit, h.slot = p.Attempt, p.Limit, p.At
		h.parent, h.parentLimit, h.deadline = p.Parent, p.ParentLimit, p.Deadline
		if holds[i].Run == 0 {
			h.job, h.damaged = p.Job, p.Damaged
		}
		h.moved(p.Run)
		switch p.Status {
		case throttle.Go:
			if p.Forced {
				d.force(h)
				continue
			}
			granted[key] = append(granted[key], h)
		case throttle.Parked:
			d.drop(h, Parked)
		default:
			d.drop(h, Gone)
		}
	}
	for key, jobs := range granted {
		if d.cooledSince(key, asked) {
			for _, h := range jobs {
				d.settle(h, verdict{outcome: Parked})
			}
			jobs = nil
		}
		d.meter(key, jobs, returned[key])
		delete(returned, key)
	}
	for key, n := range returned {
		d.meter(key, nil, n)
	}
	return nil
}

// cool gives back the jobs of a key that have slots but have not left: the key rests, and slots that were
// given before it was told to do not count any more.
func (d *departures) cool(key string) {
	const remembered = 10 * time.Second // longer than any depart takes
	d.mu.Lock()
	now := time.Now()
	if now.Sub(d.pruned) > remembered {
		maps.DeleteFunc(d.cooled, func(_ string, at time.Time) bool { return now.Sub(at) > remembered })
		d.pruned = now
	}
	d.cooled[key] = now
	m := d.meters[key]
	d.mu.Unlock()
	if m == nil {
		return
	}
	for _, h := range m.empty() {
		d.settle(h, verdict{outcome: Parked})
	}
}

// cooledSince tells whether a key was told to rest after an instant.
func (d *departures) cooledSince(key string, at time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cooled[key].After(at)
}

// force lets a job leave past the meter of its key: its bucket was charged, and whoever
// comes after it makes up for that.
func (d *departures) force(h *held) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		d.settle(h, verdict{outcome: Parked})
		return
	}
	h.departed = time.Now()
	d.start(h)
}

// meter hands jobs to the meter of their key, which lives as long as it has some.
func (d *departures) meter(key string, jobs []*held, returned int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		for _, h := range jobs {
			d.settle(h, verdict{outcome: Parked})
		}
		return
	}
	m := d.meters[key]
	if m == nil {
		m = newMeter(d.permits.Lead(), d.start, d.ask)
		m.parents = &d.parents
		d.meters[key] = m
		d.active.Go(func() {
			m.run(d.stop, func() bool { return d.retire(key, m) })
			for _, h := range m.empty() {
				d.settle(h, verdict{outcome: Parked})
			}
		})
	}
	m.add(jobs, returned)
}

// retire forgets a meter that has nothing left to do.
func (d *departures) retire(key string, m *meter) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !m.idle() {
		return false
	}
	m.retire()
	delete(d.meters, key)
	return true
}

// credit takes back what a run was measured too dear, from the meter of its key and its
// parent.
func (d *departures) credit(h *held, cost int64) {
	if cost <= 0 {
		return
	}
	d.mu.Lock()
	m := d.meters[h.hold.Key]
	d.mu.Unlock()
	if m != nil {
		m.credit(float64(cost))
	}
	d.parents.credit(h.parent, float64(cost))
}

// close has nothing leave any more and gives back what waits for its slot.
func (d *departures) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	close(d.stop)
	d.active.Wait()
}
