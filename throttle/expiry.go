package throttle

import (
	"context"

	"github.com/weirq/weir/throttle/internal/script"
)

// expired tells of jobs that waited too long. They are gone already.
func (s *Scheduler) expired(ctx context.Context, jobs []script.Expired) {
	for _, e := range jobs {
		s.config.Logger.Info("job expired", "key", e.Key, "id", e.ID)
	}
	if s.config.OnExpired == nil || len(jobs) == 0 {
		return
	}
	s.returning.Go(func() {
		for _, e := range jobs {
			job, _ := decodeJob(e.Key, e.ID, e.Job) // a damaged one is told of by its address
			s.config.OnExpired(ctx, job)
		}
	})
}
