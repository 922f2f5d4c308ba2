package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// siblings has children share a parent by weight, one of which runs out of jobs.
func siblings(ctx context.Context, s *sheet, e *env) error {
	const (
		children = 50
		idle     = "child 2" // of weight 4: has few jobs
		settle   = 500 * time.Millisecond
		watched  = 20 * time.Second
	)
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	parent := limit("500/s", 1)
	policies := []throttle.Policy{{Key: "parent", Limit: parent}}
	weights := make(map[string]int)
	jobsOf := make(map[string]int)
	var jobs []throttle.Job
	for i := range children {
		key, weight := fmt.Sprintf("child %d", i), []int{1, 2, 4}[i%3]
		policies = append(policies, throttle.Policy{Key: key, Limit: limit("100/s", 10), Parent: "parent", Weight: weight})
		weights[key], jobsOf[key] = weight, 150*weight
		if key == idle {
			jobsOf[key] = 20
		}
		of, _ := calls(r, key, jobsOf[key])
		jobs = append(jobs, of...)
	}
	sys, err := newSystem(ctx, e.client, policies...)
	if err != nil {
		return err
	}
	defer sys.close()
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
		return err
	}
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	if err := until(ctx, 20*time.Second, func() bool { return len(ofKey(sys.departures(), idle)) == jobsOf[idle] }); err != nil {
		return fmt.Errorf("the child with few jobs has some left: %w", err)
	}
	from := time.Now().Add(settle)
	to := from.Add(watched)
	if err := rest(ctx, time.Until(to)); err != nil {
		return err
	}
	left := sys.departures()
	delete(weights, idle)
	for key := range weights {
		if len(ofKey(left, key)) == jobsOf[key] {
			return errors.New("a child ran out of jobs that should not have")
		}
	}
	all := under("parent", between(left, time.Time{}, to))
	reports, err := throttletest.Measure(map[string]throttle.Limit{"parent": parent}, all, nil)
	if err != nil {
		return err
	}
	lent := between(left, from, to)
	lowest, highest := shares(lent, weights)
	s.atLeast("share/weight of the backlogged, lowest", lowest, 0.97)
	s.atMost("share/weight of the backlogged, highest", highest, 1.03)
	s.atLeast("parent used", reports[0].Ratio, 0.99)
	s.atLeast("parent used once a child has run out", float64(costOf(lent))/(500*watched.Seconds()), 0.99)
	s.atMost("excess of the parent at departure, jobs", reports[0].Excess, 1)
	return nil
}

// ofKey are the events of one key.
func ofKey(events []throttletest.Event, key string) (of []throttletest.Event) {
	for _, e := range events {
		if e.Key == key {
			of = append(of, e)
		}
	}
	return of
}

// under counts events as those of a parent.
func under(parent string, events []throttletest.Event) []throttletest.Event {
	events = slices.Clone(events)
	for i := range events {
		events[i].Key = parent
	}
	return events
}

// shares compares what each key had of the cost with its part of the weights, 1 being
// exactly that, and gives the least and the most. Keys without a weight count for
// nobody.
func shares(events []throttletest.Event, weights map[string]int) (lowest, highest float64) {
	var total, sum float64
	costs := make(map[string]float64)
	for _, e := range events {
		if weights[e.Key] > 0 {
			costs[e.Key] += float64(max(1, e.Cost))
			total += float64(max(1, e.Cost))
		}
	}
	for _, w := range weights {
		sum += float64(w)
	}
	lowest = math.Inf(1)
	for key, w := range weights {
		share := costs[key] / total / (float64(w) / sum)
		lowest, highest = min(lowest, share), max(highest, share)
	}
	return lowest, highest
}
