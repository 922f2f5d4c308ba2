package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// HookTimeout is how long a call of [SchedulerConfig].OnExpired may take.
const HookTimeout = 10 * time.Second

// expiredPayloads is how many bytes of expired jobs a release may reply: what their hook is
// told, and nothing without one.
func (s *Scheduler) expiredPayloads() int {
	if s.config.OnExpired == nil {
		return 0
	}
	return 256 << 10
}

// expired tells of jobs that waited too long. They are gone already.
func (s *Scheduler) expired(ctx context.Context, jobs []script.Expired) {
	if len(jobs) == 0 {
		return
	}
	s.config.Logger.Info("jobs expired", "jobs", len(jobs), "first_key", jobs[0].Key, "first_id", jobs[0].ID)
	if s.config.OnExpired == nil {
		return
	}
	s.returning.Go(func() {
		for _, e := range jobs {
			job, _ := decodeJob(e.Key, e.ID, e.Job) // a damaged one is told of by its address
			s.tellExpired(ctx, job)
		}
	})
}

func (s *Scheduler) tellExpired(ctx context.Context, job Job) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), HookTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			s.config.Logger.Error("OnExpired panicked", "key", job.Key, "id", job.ID, "panic", fmt.Sprintf("%T", p))
		}
	}()
	s.config.OnExpired(ctx, job)
}
