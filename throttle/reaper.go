package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// reap takes back jobs whose leases have run out: those in the hands of a worker
// that stopped renewing them, and those released whose parcel is lost. A parcel
// that is still on its way keeps its jobs.
func (s *Scheduler) reap(ctx context.Context) {
	ticker := time.NewTicker(s.config.ReapEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := s.reapOnce(ctx); err != nil && ctx.Err() == nil {
				s.config.Logger.Warn("reaping failed", "error", err)
			}
		}
	}
}

// mostReaped bounds the jobs of one shard in one pass.
const mostReaped = 500

func (s *Scheduler) reapOnce(ctx context.Context) error {
	calls := make([]*script.Call, len(s.shards))
	for i := range calls {
		calls[i] = s.store.scripts.Expired(i, mostReaped)
	}
	err := s.store.run(ctx, calls...)
	asked := make(map[[2]string]bool)
	var verdicts []*script.Call
	for _, call := range calls {
		if call.Err != nil {
			continue
		}
		var jobs []script.Verdict
		for _, job := range call.Overdue() {
			extend, err := s.onItsWay(ctx, job, asked)
			if err != nil {
				return err
			}
			jobs = append(jobs, script.Verdict{Hold: job.Hold, Extend: extend})
		}
		if len(jobs) > 0 {
			verdicts = append(verdicts, s.store.scripts.Reap(
				call.Shard, s.config.Lead.Microseconds(), s.config.Lease.Microseconds(), jobs))
			s.logReaped(call.Shard, jobs)
		}
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
	returned := 0
	for _, j := range jobs {
		if !j.Extend {
			returned++
		}
	}
	if returned > 0 {
		s.config.Logger.Warn("jobs taken back from lost workers", "shard", shard, "jobs", returned)
	}
}
