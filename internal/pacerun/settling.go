package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// settling has jobs turn out dearer, then cheaper, than they were charged for.
func settling(ctx context.Context, s *sheet, e *env) error {
	for _, c := range []struct{ estimate, truth int64 }{{1, 5}, {5, 1}} {
		rate, err := settledPace(ctx, e, c.estimate, c.truth)
		if err != nil {
			return err
		}
		s.between(fmt.Sprintf("true cost/configured, %d estimated as %d", c.truth, c.estimate), rate/20, 0.99, 1.01)
	}
	return nil
}

// settledPace is the true cost per second that leaves a key at 20/s.
func settledPace(ctx context.Context, e *env, estimate, truth int64) (float64, error) {
	const (
		begin   = 2 * time.Second // until the burst is made up for
		watched = 20 * time.Second
	)
	key := fmt.Sprintf("%d for %d", estimate, truth)
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: key, Limit: limit("20/s", 10)})
	if err != nil {
		return 0, err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return 0, err
	}
	if _, err := sys.handle(worker.Config{}, asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		time.Sleep(5 * time.Millisecond)
		return worker.SetCost(ctx, truth)
	})); err != nil {
		return 0, err
	}
	jobs := make([]throttle.Job, 3000/truth)
	for i := range jobs {
		jobs[i] = throttle.Job{Key: key, Type: "noop", Cost: estimate}
	}
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
		return 0, err
	}
	if err := until(ctx, 10*time.Second, func() bool { return len(sys.departures()) > 0 }); err != nil {
		return 0, err
	}
	from := sys.departures()[0].At.Add(begin)
	to := from.Add(watched)
	if err := rest(ctx, time.Until(to)); err != nil {
		return 0, err
	}
	left := ofKey(sys.departures(), key)
	if len(left) == len(jobs) {
		return 0, fmt.Errorf("all %d jobs left before %v were over", len(jobs), begin+watched)
	}
	// What is left would leave beside the jobs of the next run.
	if _, err := sys.queue.Purge(ctx, key); err != nil {
		return 0, err
	}
	return pace(costing(truth, between(left, from, to))), nil
}

// costing gives all events one cost.
func costing(cost int64, events []throttletest.Event) []throttletest.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Cost = cost
	}
	return events
}
