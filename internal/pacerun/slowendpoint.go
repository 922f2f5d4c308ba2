package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// slowEndpoint has one worker serve an endpoint that takes long to answer, beside
// many that do not.
func slowEndpoint(ctx context.Context, s *sheet, e *env) error {
	const (
		keys     = 100
		jobs     = 151 // 30 s at 5/s
		inFlight = 100
	)
	slow, err := newReceiver(taking(10 * time.Second))
	if err != nil {
		return err
	}
	defer slow.close()
	fast, err := newReceiver(taking(5 * time.Millisecond))
	if err != nil {
		return err
	}
	defer fast.close()
	policies, limits, quick, expected := alike(fast, "fast", keys, jobs)
	policies = append(policies, throttle.Policy{Key: "slow", Limit: limit("100/s", 1), MaxInFlight: inFlight})
	sys, err := newSystem(ctx, e.client, policies...)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	// Calls to the slow endpoint are not waited for in the end.
	if _, err := sys.work(worker.Config{ShutdownTimeout: 100 * time.Millisecond}); err != nil {
		return err
	}
	late, _ := calls(slow, "slow", 2000)
	if _, err := sys.queue.EnqueueMany(ctx, late); err != nil {
		return err
	}
	if err := until(ctx, 10*time.Second, func() bool { return slow.count() == inFlight }); err != nil {
		return fmt.Errorf("%d calls to the slow endpoint: %w", slow.count(), err)
	}
	if _, err := sys.queue.EnqueueMany(ctx, quick); err != nil {
		return err
	}
	if err := until(ctx, 60*time.Second, func() bool { return fast.distinct() == len(quick) }); err != nil {
		return fmt.Errorf("%d of %d quick jobs arrived: %w", fast.distinct(), len(quick), err)
	}
	reports, err := throttletest.Measure(limits, fast.events(), expected)
	if err != nil {
		return err
	}
	lowest, excess, wrong := reports[0].Ratio, 0.0, 0
	for _, k := range reports {
		lowest, excess = min(lowest, k.Ratio), max(excess, k.Excess)
		wrong += len(k.Lost) + len(k.Duplicated)
	}
	s.atLeast("achieved/configured of fast keys, lowest", lowest, 0.99)
	s.atMost("excess of fast keys, jobs", excess, 1)
	s.atMost("lost or duplicated of fast keys", float64(wrong), 0)
	s.between("slow calls open at once", float64(slow.openAtOnce("slow")), inFlight, inFlight)
	return nil
}
