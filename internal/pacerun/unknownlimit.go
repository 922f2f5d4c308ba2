package main

import (
	"context"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest/provider"
	"github.com/weirq/weir/worker"
)

// unknownLimit has a key find out what the other side allows, which is a fifth of what its policy does.
func unknownLimit(ctx context.Context, s *sheet, e *env) error {
	const (
		allowed = 10 // a second
		learn   = 30 * time.Second
		span    = 120 * time.Second
	)
	quota, err := provider.Quota{Limit: allowed, Window: time.Second}.Handler()
	if err != nil {
		return err
	}
	record, url, done, err := listenOn(quota)
	if err != nil {
		return err
	}
	defer done()
	sys, err := newSystem(ctx, e.client, throttle.Policy{
		Key: "k", Limit: limit("50/s", 1), Listen: throttle.Adapt, Floor: throttle.Rate{Cost: 1, Per: time.Second},
	})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	if _, err := sys.work(worker.Config{}); err != nil {
		return err
	}
	if err := enqueueCalls(ctx, sys, url, "k", 3000); err != nil {
		return err
	}
	started := time.Now()
	if err := rest(ctx, span); err != nil {
		return err
	}
	var passed, refused int
	late := func(at time.Time) bool { return at.Sub(started) >= learn && at.Sub(started) < span }
	for _, at := range record.Accepted("/") {
		if late(at) {
			passed++
		}
	}
	for _, at := range record.Refused("/") {
		if late(at) {
			refused++
		}
	}
	s.atLeast("used of what the other side allows, after 30 s", float64(passed)/(allowed*(span-learn).Seconds()), 0.9)
	s.atMost("refused of the calls, after 30 s", float64(refused)/float64(passed+refused), 0.02)
	return nil
}
