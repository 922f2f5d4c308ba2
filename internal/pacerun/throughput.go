package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

const bulk = 50_000

// throughput takes jobs that nothing holds back through Weir and through plain
// asynq, in turns, enqueueing included.
func throughput(ctx context.Context, s *sheet) error {
	var weir, plain []float64
	for range 5 {
		w, err := timed(ctx, throughWeir)
		if err != nil {
			return fmt.Errorf("weir: %w", err)
		}
		p, err := timed(ctx, throughAsynq)
		if err != nil {
			return fmt.Errorf("asynq: %w", err)
		}
		weir, plain = append(weir, w), append(plain, p)
	}
	slices.Sort(weir)
	slices.Sort(plain)
	s.add("weir, jobs/s (median of 5)", weir[2], "", true)
	s.add("plain asynq, jobs/s (median of 5)", plain[2], "", true)
	s.atLeast("weir/asynq", weir[2]/plain[2], 2)
	return nil
}

func timed(ctx context.Context, run func(context.Context, redis.UniversalClient) (time.Duration, error)) (float64, error) {
	r, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	took, err := run(ctx, r.Client())
	return bulk / took.Seconds(), err
}

var payload = make([]byte, 200)

func throughWeir(ctx context.Context, client redis.UniversalClient) (time.Duration, error) {
	sys, err := newSystem(ctx, client, throttle.Policy{
		Key: throttle.AnyKey, Limit: limit("1000000/s", 1_000_000), MaxInFlight: 2000,
	})
	if err != nil {
		return 0, err
	}
	defer sys.close()
	if err := sys.schedule(); err != nil {
		return 0, err
	}
	var done atomic.Int64
	if _, err := sys.handle(worker.Config{}, asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		done.Add(1)
		return nil
	})); err != nil {
		return 0, err
	}
	started := time.Now()
	for from := 0; from < bulk; from += 1000 {
		jobs := make([]throttle.Job, 1000)
		for i := range jobs {
			jobs[i] = throttle.Job{Key: fmt.Sprintf("key %d", i%20), Type: "noop", Payload: payload}
		}
		if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
			return 0, err
		}
	}
	err = until(ctx, 2*time.Minute, func() bool { return done.Load() == bulk })
	return time.Since(started), err
}

// throughAsynq uses asynq as its users do: a client that enqueues from several
// goroutines, and a server that looks for work without rest.
func throughAsynq(ctx context.Context, client redis.UniversalClient) (time.Duration, error) {
	var done atomic.Int64
	server := asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency: 500, TaskCheckInterval: time.Millisecond, LogLevel: asynq.WarnLevel,
	})
	if err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		done.Add(1)
		return nil
	})); err != nil {
		return 0, err
	}
	defer server.Shutdown()
	producer := asynq.NewClientFromRedisClient(client)
	started := time.Now()
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() {
			for range bulk / cap(errs) {
				if _, err := producer.EnqueueContext(ctx, asynq.NewTask("noop", payload)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	err := until(ctx, 2*time.Minute, func() bool { return done.Load() == bulk })
	return time.Since(started), err
}
