package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest/provider"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/upstream"
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
	record := provider.NewRecord(quota, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: record, ReadHeaderTimeout: 10 * time.Second}
	record.Attach(server)
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	url := "http://" + l.Addr().String()
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
	if _, err := sys.handle(worker.Config{}, asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error { return heed(ctx, url) })); err != nil {
		return err
	}
	var jobs []throttle.Job
	for i := range 3000 {
		jobs = append(jobs, throttle.Job{Key: "k", ID: fmt.Sprint(i), Type: "t"})
	}
	if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
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

// heed makes one call, and tells what its answer says.
func heed(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said := upstream.Read(resp.StatusCode, resp.Header, time.Now(), throttle.MaxRest)
	f := worker.Feedback{Fared: throttle.Succeeded, Rest: said.RetryAfter}
	if said.Refused {
		f.Fared, err = throttle.OverLimit, fmt.Errorf("%d: %w", resp.StatusCode, worker.ErrRefused)
	}
	if told := worker.Tell(ctx, f); told != nil {
		return told
	}
	return err
}
