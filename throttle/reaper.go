package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// reap takes back jobs whose leases have run out: those in the hands of a worker
// that stopped renewing them, and those released whose parcel is lost. A parcel
// that is still on its way keeps its jobs.
func (s *Scheduler) reap(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-s.leases.changed:
		case <-timer.C:
		}
		shards, next := s.leases.ringing(time.Now())
		if len(shards) == 0 {
			timer.Reset(next)
			continue
		}
		if err := s.reapShards(ctx, shards); err != nil && ctx.Err() == nil {
			failures++
			s.config.Logger.Warn("reaping failed", "error", err, "failures", failures)
			timer.Reset(backoff(failures))
			continue
		}
		failures = 0
		timer.Reset(0)
	}
}

// alarms tell when to look for ended leases, shard by shard. Every release and
// every look tells the next instant, so nothing is asked of Redis in vain.
type alarms struct {
	mu      sync.Mutex
	at      []time.Time // zero: no lease is known
	changed chan struct{}
}

func newAlarms(shards int) *alarms {
	return &alarms{at: make([]time.Time, shards), changed: make(chan struct{}, 1)}
}

// grace lets leases that end together be looked for together.
const grace = 50 * time.Millisecond

// set puts the alarm of a shard to us µs from now, or off for -1.
func (a *alarms) set(shard int, us int64) {
	a.mu.Lock()
	a.at[shard] = time.Time{}
	if us >= 0 {
		a.at[shard] = time.Now().Add(microseconds(us) + grace)
	}
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// ringing returns the shards whose instant has come, and how long until the next.
func (a *alarms) ringing(now time.Time) (shards []int, next time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = time.Hour
	for i, at := range a.at {
		switch {
		case at.IsZero():
		case at.After(now):
			next = min(next, at.Sub(now))
		default:
			shards = append(shards, i)
		}
	}
	return shards, next
}

// mostReaped bounds the jobs of one shard in one pass.
const mostReaped = 500

func (s *Scheduler) reapShards(ctx context.Context, shards []int) error {
	calls := make([]*script.Call, len(shards))
	for i, shard := range shards {
		calls[i] = s.store.scripts.Overdue(shard, mostReaped)
	}
	err := s.store.run(ctx, calls...)
	asked := make(map[[2]string]bool)
	var verdicts []*script.Call
	for _, call := range calls {
		if call.Err != nil {
			continue
		}
		next, overdue := call.Overdue()
		var jobs []script.Verdict
		for _, job := range overdue {
			extend, askErr := s.onItsWay(ctx, job, asked)
			if askErr != nil {
				err = errors.Join(err, askErr)
				continue
			}
			jobs = append(jobs, script.Verdict{Hold: job.Hold, Extend: extend})
		}
		if len(jobs) > 0 {
			verdicts = append(verdicts, s.store.scripts.Reap(
				call.Shard, s.config.Lead.Microseconds(), s.config.Lease.Microseconds(), jobs))
			s.logReaped(call.Shard, jobs)
			next = 0 // look again: there may be more
		}
		s.leases.set(call.Shard, next)
	}
	if len(verdicts) > 0 {
		if reapErr := s.store.run(ctx, verdicts...); reapErr != nil {
			return fmt.Errorf("reap: %w", reapErr)
		}
	}
	return err
}

// onItsWay asks the dispatcher about a job that nobody has departed, once a round
// and pool.
func (s *Scheduler) onItsWay(ctx context.Context, job script.Overdue, asked map[[2]string]bool) (bool, error) {
	if job.Departed {
		return false, nil
	}
	at := [2]string{job.Round, job.Pool}
	alive, known := asked[at]
	if !known {
		var err error
		if alive, err = s.dispatch.Alive(ctx, job.Round, job.Pool); err != nil {
			return false, fmt.Errorf("ask for parcels of round %s: %w", job.Round, err)
		}
		asked[at] = alive
	}
	return alive, nil
}

func (s *Scheduler) logReaped(shard int, jobs []script.Verdict) {
	returned, waiting := 0, 0
	for _, j := range jobs {
		if j.Extend {
			waiting++
		} else {
			returned++
		}
	}
	if returned > 0 {
		s.config.Logger.Warn("jobs taken back from lost workers", "shard", shard, "jobs", returned)
	}
	// They come in small groups, as they were released.
	if now := time.Now(); waiting > 0 && now.Sub(s.warned) >= s.config.Lease {
		s.warned = now
		s.config.Logger.Warn("released jobs wait for a worker: is there one for their pool?", "shard", shard, "jobs", waiting)
	}
}
