package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// killed kills a worker and a scheduler under way, three times each.
func killed(ctx context.Context, s *sheet) error {
	rd, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = rd.Close() }()
	r, err := newReceiver(taking(5 * time.Millisecond))
	if err != nil {
		return err
	}
	defer r.close()
	limits := make(map[string]throttle.Limit)
	var policies []throttle.Policy
	for i := range 5 {
		key := fmt.Sprintf("key %d", i)
		limits[key] = limit("40/s", 1)
		policies = append(policies, throttle.Policy{Key: key, Limit: limits[key]})
	}
	sys, err := newSystem(ctx, rd.Client(), policies...)
	if err != nil {
		return err
	}
	crew, err := startCrew(rd, 2, 2)
	defer crew.stop()
	if err != nil {
		return err
	}
	expected := make(map[string][]string)
	total := 0
	for key := range limits {
		jobs, ids := calls(r, key, 1200)
		expected[key] = ids
		total += len(jobs)
		if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
	}
	var kills []time.Time
	for n := range 3 {
		if err := until(ctx, 30*time.Second, func() bool { return r.distinct() > total*(n+1)/5 }); err != nil {
			return err
		}
		kills = append(kills, time.Now())
		crew.workers[n%2].kill()
		crew.schedulers[n%2].kill()
		if err := crew.workers[n%2].start(); err != nil {
			return err
		}
		if err := crew.schedulers[n%2].start(); err != nil {
			return err
		}
	}
	if err := until(ctx, 90*time.Second, func() bool { return r.distinct() == total }); err != nil {
		return fmt.Errorf("%d of %d jobs arrived: %w", r.distinct(), total, err)
	}
	reports, err := throttletest.Measure(limits, r.events(), expected)
	if err != nil {
		return err
	}
	lost, excess := 0, 0.0
	for _, k := range reports {
		lost += len(k.Lost)
		excess = max(excess, k.Excess)
	}
	twice, unexplained := again(r.events(), kills, 100*time.Millisecond)
	s.atMost("lost", float64(lost), 0)
	s.add("duplicated", float64(twice), "", true)
	s.atMost("duplicated, not in flight at a kill", float64(unexplained), 0)
	s.atMost("excess, jobs", excess, 1)
	return nil
}
