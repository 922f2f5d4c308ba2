package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// paced enqueues n calls under each key, waits until all have arrived, and reports.
// It also reports on the departures, if they were in this process.
func paced(ctx context.Context, e *env, r *receiver, limits map[string]throttle.Limit, n int, atMost time.Duration) (arrivals, departures throttletest.Reports, err error) {
	var policies []throttle.Policy
	for key, l := range limits {
		policies = append(policies, throttle.Policy{Key: key, Limit: l})
	}
	sys, err := newSystem(ctx, e.client, policies...)
	if err != nil {
		return nil, nil, err
	}
	defer sys.close()
	if err := e.start(sys, e.url); err != nil {
		return nil, nil, err
	}
	expected := make(map[string][]string)
	var jobs []throttle.Job
	for key := range limits {
		of, ids := calls(r, key, n)
		jobs = append(jobs, of...)
		expected[key] = ids
	}
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
		return nil, nil, err
	}
	if err := until(ctx, atMost, func() bool { return r.distinct() == len(jobs) }); err != nil {
		return nil, nil, fmt.Errorf("%d of %d jobs arrived: %w", r.distinct(), len(jobs), err)
	}
	if arrivals, err = throttletest.Measure(limits, r.events(), expected); err != nil {
		return nil, nil, err
	}
	if left := sys.departures(); len(left) > 0 {
		departures, err = throttletest.Measure(limits, left, nil)
	}
	return arrivals, departures, err
}

func limit(rate string, burst int64) throttle.Limit {
	l, err := throttle.ParseLimit(rate, burst)
	if err != nil {
		panic(err) // made of this program's own constants
	}
	return l
}

func oneKey(ctx context.Context, s *sheet, e *env) error {
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	reports, left, err := paced(ctx, e, r, map[string]throttle.Limit{"one": limit("100/s", 1)}, 2000, 40*time.Second)
	if err != nil {
		return err
	}
	one := reports[0]
	s.between("achieved/configured", one.Ratio, 0.995, 1.005)
	s.atMost("excess, jobs", one.Excess, 1)
	if len(left) > 0 {
		s.atMost("excess at departure, jobs", left[0].Excess, 1)
	}
	s.atMost("gap error p99, ms", ms(one.GapP99), 5)
	s.atMost("lost or duplicated", float64(len(one.Lost)+len(one.Duplicated)), 0)
	return nil
}

func manyKeys(ctx context.Context, s *sheet, e *env) error {
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	limits := make(map[string]throttle.Limit)
	for i := range 100 {
		limits[fmt.Sprintf("key %d", i)] = limit("10/s", 1)
	}
	reports, _, err := paced(ctx, e, r, limits, 200, 60*time.Second)
	if err != nil {
		return err
	}
	lowest, highest, excess, wrong := 2.0, 0.0, 0.0, 0
	for _, k := range reports {
		lowest, highest = min(lowest, k.Ratio), max(highest, k.Ratio)
		excess = max(excess, k.Excess)
		wrong += len(k.Lost) + len(k.Duplicated)
	}
	s.atLeast("achieved/configured, lowest", lowest, 0.99)
	s.atMost("achieved/configured, highest", highest, 1.01)
	s.atLeast("Jain index", reports.JainIndex(), 0.999)
	s.atMost("excess, jobs", excess, 1)
	s.atMost("lost or duplicated", float64(wrong), 0)
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// burst has a key use its burst, go on at its rate, idle, and do so again.
func burst(ctx context.Context, s *sheet, e *env) error {
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	l := limit("10/s", 20)
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: "bursty", Limit: l})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	jobs, _ := calls(r, "bursty", 100)
	for half := range 2 {
		if _, err := sys.queue.EnqueueMany(ctx, jobs[half*50:half*50+50]); err != nil {
			return err
		}
		if err := until(ctx, 10*time.Second, func() bool { return r.count() == half*50+50 }); err != nil {
			return err
		}
		part := r.events()[half*50:]
		atOnce := 0
		for _, ev := range part {
			if ev.At.Sub(part[0].At) < 50*time.Millisecond {
				atOnce++
			}
		}
		s.between(fmt.Sprintf("at once, burst %d", half+1), float64(atOnce), 20, 20)
		reports, err := throttletest.Measure(map[string]throttle.Limit{"bursty": l}, part, nil)
		if err != nil {
			return err
		}
		s.between(fmt.Sprintf("achieved/configured after burst %d", half+1), reports[0].Ratio, 0.99, 1.01)
		if half == 0 {
			if err := until(ctx, 4*time.Second, func() bool {
				info, err := sys.queue.Key(ctx, "bursty")
				return err == nil && info.Level == 0
			}); err != nil {
				return err
			}
		}
	}
	reports, err := throttletest.Measure(map[string]throttle.Limit{"bursty": l}, r.events(), nil)
	if err != nil {
		return err
	}
	s.atMost("excess, jobs", reports[0].Excess, 1)
	return nil
}
