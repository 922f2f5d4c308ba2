package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// toldToRest has the other side refuse one call of a key, with 100 that wait and three workers.
func toldToRest(ctx context.Context, s *sheet, e *env) error {
	const (
		jobs    = 100
		nth     = 25 // call that is refused
		silence = 30 * time.Second
		burst   = 10
	)
	var n atomic.Int64
	var refused atomic.Pointer[time.Time]
	record, url, done, err := listenOn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/told" && n.Add(1) == nth {
			now := time.Now()
			refused.Store(&now)
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	if err != nil {
		return err
	}
	defer done()
	sys, err := newSystem(ctx, e.client,
		throttle.Policy{Key: "told", Limit: limit("10/s", burst)}, throttle.Policy{Key: "other", Limit: limit("10/s", 1)})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return err
	}
	for range 3 {
		if _, err := sys.work(worker.Config{}); err != nil {
			return err
		}
	}
	if err := enqueueCalls(ctx, sys, url+"/told", "told", jobs+nth); err != nil {
		return err
	}
	if err := enqueueCalls(ctx, sys, url+"/other", "other", 400); err != nil {
		return err
	}
	if err := until(ctx, 90*time.Second, func() bool { return len(record.Accepted("/told")) == jobs+nth }); err != nil {
		return fmt.Errorf("%d of %d calls passed: %w", len(record.Accepted("/told")), jobs+nth, err)
	}
	at := *refused.Load()
	follow, during, others := 0, 0, 0
	var after []throttletest.Event
	for i, call := range record.Accepted("/told") {
		switch since := call.Sub(at); {
		case since < 0:
		case since < 20*time.Millisecond: // on the wire
			follow++
		case since < silence-time.Second:
			during++
		default:
			after = append(after, throttletest.Event{Key: "told", ID: fmt.Sprint(i), At: call, Cost: 1})
		}
	}
	for _, call := range record.Accepted("/other") {
		if since := call.Sub(at); since > 0 && since < silence {
			others++
		}
	}
	report, err := throttletest.Measure(map[string]throttle.Limit{"told": limit("10/s", burst)}, after, nil)
	if err != nil {
		return err
	}
	attempts, err := sys.queue.Stats(ctx)
	if err != nil {
		return err
	}
	s.atMost("calls that followed the refusal", float64(follow), 2)
	s.atMost("calls during the rest", float64(during), 0)
	s.between("silence, s", after[0].At.Sub(at).Seconds(), 29, 31)
	s.atMost("excess on resuming, jobs", report[0].Excess, 1)
	s.atLeast("another key meanwhile, achieved/configured", float64(others)/(10*silence.Seconds()), 0.99)
	s.atMost("failed attempts or dead", float64(attempts.Dead), 0)
	return nil
}

// deadEndpoint has one endpoint of a hundred not answer at all.
func deadEndpoint(ctx context.Context, s *sheet, e *env) error {
	const keys, jobs = 100, 151 // 30 s at 5/s
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	limits := make(map[string]throttle.Limit)
	expected := make(map[string][]string)
	policies := []throttle.Policy{{Key: "dead", Limit: limit("5/s", 1), Circuit: &throttle.Circuit{Failures: 5, Rest: 5 * time.Second}}}
	var live []throttle.Job
	for i := range keys - 1 {
		key := fmt.Sprintf("live %d", i)
		limits[key] = limit("5/s", 1)
		policies = append(policies, throttle.Policy{Key: key, Limit: limits[key]})
		of, ids := calls(r, key, jobs)
		live, expected[key] = append(live, of...), ids
	}
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
