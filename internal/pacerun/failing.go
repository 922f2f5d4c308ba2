package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// failing has every job fail on its first attempt.
func failing(ctx context.Context, s *sheet, e *env) error {
	const n = 500
	r, err := newReceiver(func(a arrival) int {
		if a.nth == 1 {
			return 500
		}
		return 204
	})
	if err != nil {
		return err
	}
	defer r.close()
	l := limit("50/s", 1)
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: "failing", Limit: l})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	attempts := &attempts{next: httpjob.NewHandler(httpjob.Config{AllowNetworks: loopback})}
	if _, err := sys.handle(worker.Config{
		Retry: worker.RetryPolicy{Base: 50 * time.Millisecond, Cap: time.Second, MaxAttempts: 2},
	}, attempts); err != nil {
		return err
	}
	jobs, _ := calls(r, "failing", n)
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
		return err
	}
	if err := until(ctx, 60*time.Second, func() bool { return r.count() == 2*n }); err != nil {
		return err
	}
	// Attempts share ids, so only the pace is measured here; the counts follow.
	reports, err := throttletest.Measure(map[string]throttle.Limit{"failing": l}, r.events(), nil)
	if err != nil {
		return err
	}
	s.between("achieved/configured, retries included", reports[0].Ratio, 0.99, 1.01)
	s.atMost("excess, jobs", reports[0].Excess, 1)
	s.atMost("jobs not attempted exactly twice", float64(attempts.wrong(n)), 0)
	dead, err := sys.queue.Jobs(ctx, "failing", throttle.Dead, throttle.Page{})
	if err != nil {
		return err
	}
	s.atMost("dead", float64(len(dead.Jobs)), 0)
	return nil
}

// attempts passes tasks on and counts the attempts that handlers were told of.
type attempts struct {
	next asynq.Handler
	mu   sync.Mutex
	seen map[string][]int
}

func (a *attempts) ProcessTask(ctx context.Context, t *asynq.Task) error {
	info, _ := worker.JobFrom(ctx)
	a.mu.Lock()
	if a.seen == nil {
		a.seen = make(map[string][]int)
	}
	a.seen[info.ID] = append(a.seen[info.ID], info.Attempt)
	a.mu.Unlock()
	return a.next.ProcessTask(ctx, t)
}

// wrong counts the jobs that were not told of attempts 1 and 2.
func (a *attempts) wrong(jobs int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	wrong := jobs - len(a.seen)
	for _, told := range a.seen {
		if !slices.Equal(told, []int{1, 2}) {
			wrong++
		}
	}
	return wrong
}
