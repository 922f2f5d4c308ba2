package main

import (
	"context"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// quotas has a rate, a sliding and a fixed window govern one key that two workers
// serve. It starts a second before the edge of a fixed window, so that a sliding
// window lies across it.
func quotas(ctx context.Context, s *sheet, e *env) error {
	const whole = 3 // fixed windows
	sliding := throttle.Quota{Limit: 50, Per: 5 * time.Second, Window: throttle.Sliding}
	fixed := throttle.Quota{Limit: 100, Per: 20 * time.Second, Window: throttle.Fixed}
	l := limit("20/s", 1)
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: "metered", Limit: l, Quotas: []throttle.Quota{sliding, fixed}})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	for range 2 {
		if _, err := sys.work(worker.Config{}); err != nil {
			return err
		}
	}
	first := alignedStart(time.Now().Add(time.Second), fixed.Per).Add(fixed.Per)
	if err := rest(ctx, time.Until(first.Add(-time.Second))); err != nil {
		return err
	}
	jobs, _ := calls(r, "metered", 1000)
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
		return err
	}
	end := first.Add(whole * fixed.Per)
	if err := rest(ctx, time.Until(end)); err != nil {
		return err
	}
	left := inTime(between(sys.departures(), time.Time{}, end))
	reports, err := throttletest.Measure(map[string]throttle.Limit{"metered": l}, left, nil)
	if err != nil {
		return err
	}
	s.atMost("excess of the rate at departure, jobs", reports[0].Excess, 1)
	s.atMost("most in a sliding window", float64(most(left, sliding.Per)), float64(sliding.Limit))
	inWindow := aligned(left, fixed.Per)
	highest := int64(0)
	for _, n := range inWindow {
		highest = max(highest, n)
	}
	s.atMost("most in a fixed window", float64(highest), float64(fixed.Limit))
	lowest, fullest := fixed.Limit, sliding.Limit
	for i := range whole {
		start := first.Add(time.Duration(i) * fixed.Per)
		lowest = min(lowest, inWindow[start])
		fullest = min(fullest, most(between(left, start, start.Add(fixed.Per)), sliding.Per))
	}
	s.atLeast("fixed window used, lowest", float64(lowest)/float64(fixed.Limit), 0.99)
	s.atLeast("sliding window used at its fullest, lowest", float64(fullest)/float64(sliding.Limit), 0.99)
	mean, longest := guards(left, sliding, fixed)
	s.atLeast("sliding window used while it is the tightest", float64(sliding.Per)/float64(sliding.Per+mean), 0.99)
	s.add("its guard, mean, intervals of the rate", float64(mean)/float64(l.Interval()), "", true)
	s.add("its guard, longest, intervals of the rate", float64(longest)/float64(l.Interval()), "", true)
	return nil
}

// guards are how much later than the sliding window lets go those leave that find it
// full when the one before them has left: the mean and the longest. Events are of cost
// 1 and in the order of time. The first of a fixed window waits for that.
func guards(left []throttletest.Event, sliding, fixed throttle.Quota) (mean, longest time.Duration) {
	var sum time.Duration
	n := 0
	for i := int(sliding.Limit); i < len(left); i++ {
		before, at := left[i-1].At, left[i].At
		free := left[i-int(sliding.Limit)].At.Add(sliding.Per)
		if !free.After(before) || !alignedStart(at, fixed.Per).Equal(alignedStart(before, fixed.Per)) {
			continue
		}
		sum += at.Sub(free)
		longest = max(longest, at.Sub(free))
		n++
	}
	return sum / time.Duration(max(1, n)), longest
}
