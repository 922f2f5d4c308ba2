package main

import (
	"context"
	"time"

	"github.com/weirq/weir/throttle"
)

// liveLimit changes the limit of a key twice under a backlog, while several
// processes serve it.
func liveLimit(ctx context.Context, s *sheet, e *env) error {
	const (
		per    = 10 * time.Second
		settle = 2 * time.Second // until a change is in force
		phase  = 17 * time.Second
	)
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	low, high := limit("30/s", 30), limit("150/s", 30)
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: "live", Limit: low})
	if err != nil {
		return err
	}
	defer sys.close()
	jobs, _ := calls(r, "live", 10_000)
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
		return err
	}
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	if err := until(ctx, 10*time.Second, func() bool { return r.count() > 0 }); err != nil {
		return err
	}
	if err := rest(ctx, 6*time.Second); err != nil {
		return err
	}
	for _, change := range []struct {
		to           throttle.Limit
		fewest, most int64 // in any 10 s: 2 % below the rate, or less; a burst above it
	}{
		{high, 1480, 1530},
		{low, 294, 330},
	} {
		changed := time.Now()
		if err := sys.queue.SetPolicy(ctx, throttle.Policy{Key: "live", Limit: change.to}); err != nil {
			return err
		}
		if err := rest(ctx, phase); err != nil {
			return err
		}
		now, rate := time.Now(), throttle.FormatRate(change.to.Rate, change.to.Period)
		all := spanOf(r.events(), per, changed, now, change.fewest, change.most)
		inForce := time.Duration(0)
		if !all.outside.IsZero() {
			inForce = all.outside.Sub(changed)
		}
		s.atMost("changed to "+rate+": in force after, s", inForce.Seconds(), settle.Seconds())
		later := spanOf(r.events(), per, changed.Add(settle), now, change.fewest, change.most)
		s.atLeast("changed to "+rate+": fewest in 10 s", float64(later.fewest), float64(change.fewest))
		s.atMost("changed to "+rate+": most in 10 s", float64(later.most), float64(change.most))
	}
	s.atMost("duplicated", float64(r.count()-r.distinct()), 0)
	return nil
}
