package main

import (
	"context"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// stopped takes all workers away under a backlog and brings them back.
func stopped(ctx context.Context, s *sheet, e *env) error {
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	limits := map[string]throttle.Limit{"even": limit("50/s", 1), "bursty": limit("20/s", 10)}
	var policies []throttle.Policy
	for key, l := range limits {
		policies = append(policies, throttle.Policy{Key: key, Limit: l})
	}
	sys, err := newSystem(ctx, e.client, policies...)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	stop, err := sys.work(worker.Config{})
	if err != nil {
		return err
	}
	expected := make(map[string][]string)
	total := 0
	for key := range limits {
		jobs, ids := calls(r, key, 500)
		expected[key] = ids
		total += len(jobs)
		if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
	}
	if err := until(ctx, 10*time.Second, func() bool { return r.count() >= 150 }); err != nil {
		return err
	}
	stop()
	before := r.count()
	if err := rest(ctx, 30*time.Second); err != nil {
		return err
	}
	s.atMost("arrivals while stopped", float64(r.count()-before), 0)
	if _, err := sys.work(worker.Config{}); err != nil {
		return err
	}
	if err := until(ctx, 60*time.Second, func() bool { return r.distinct() == total }); err != nil {
		return err
	}
	reports, err := throttletest.Measure(limits, r.events(), expected)
	if err != nil {
		return err
	}
	for _, k := range reports {
		s.atMost("excess of key "+k.Key+", jobs", k.Excess, 1)
		s.atMost("lost or duplicated of key "+k.Key, float64(len(k.Lost)+len(k.Duplicated)), 0)
	}
	return nil
}
