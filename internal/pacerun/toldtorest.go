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
