package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// deadEndpoint has one endpoint of a hundred not answer at all.
func deadEndpoint(ctx context.Context, s *sheet, e *env) error {
	const keys, jobs = 100, 151 // 30 s at 5/s
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	policies, limits, live, expected := alike(r, "live", keys-1, jobs)
	policies = append(policies, throttle.Policy{Key: "dead", Limit: limit("5/s", 1), Circuit: &throttle.Circuit{Failures: 5, Rest: 5 * time.Second}})
	sys, err := newSystem(ctx, e.client, policies...)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	if _, err := sys.work(worker.Config{ShutdownTimeout: 100 * time.Millisecond, Timeout: 5 * time.Second}); err != nil {
		return err
	}
	// Nobody listens at this port.
	if err := enqueueCalls(ctx, sys, "http://127.0.0.1:1/", "dead", 300); err != nil {
		return err
	}
	if _, err := sys.queue.EnqueueMany(ctx, live); err != nil {
		return err
	}
	if err := until(ctx, 60*time.Second, func() bool { return r.distinct() == len(live) }); err != nil {
		return fmt.Errorf("%d of %d jobs arrived: %w", r.distinct(), len(live), err)
	}
	reports, err := throttletest.Measure(limits, r.events(), expected)
	if err != nil {
		return err
	}
	lowest, excess := reports[0].Ratio, 0.0
	for _, k := range reports {
		lowest, excess = min(lowest, k.Ratio), max(excess, k.Excess)
	}
	dead, err := sys.queue.Key(ctx, "dead")
	if err != nil {
		return err
	}
	s.atLeast("achieved/configured of 99 live keys, lowest", lowest, 0.99)
	s.atMost("excess of live keys, jobs", excess, 1)
	s.atLeast("jobs kept of the dead one", float64(dead.Waiting+dead.Delayed), 250)
	return nil
}

// alike are keys at 5/s with as many calls each: their policies, limits, jobs and the ids that are to arrive.
func alike(r *receiver, name string, keys, jobs int) (policies []throttle.Policy, limits map[string]throttle.Limit, all []throttle.Job, expected map[string][]string) {
	limits, expected = make(map[string]throttle.Limit), make(map[string][]string)
	for i := range keys {
		key := fmt.Sprintf("%s %d", name, i)
		limits[key] = limit("5/s", 1)
		policies = append(policies, throttle.Policy{Key: key, Limit: limits[key]})
		of, ids := calls(r, key, jobs)
		all, expected[key] = append(all, of...), ids
	}
	return policies, limits, all, expected
}
