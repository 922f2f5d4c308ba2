// Command webhooks is the whole of Weir in one process: a backlog of webhook
// events for three receivers that each allow another pace, delivered by HTTP
// through their limits, and measured where they arrive.
//
//	go run ./examples/webhooks
//
// It needs nothing installed: Redis is embedded. Read deliver in this file to see
// how a program of your own takes Weir in.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// limits are what the three receivers allow, by key.
var limits = []throttle.Policy{
	{Key: "billing", Limit: throttle.Limit{Rate: 20, Period: time.Second, Burst: 1}},
	{Key: "crm", Limit: throttle.Limit{Rate: 5, Period: time.Second, Burst: 10}},
	{Key: "search", Limit: throttle.Limit{Rate: 50, Period: time.Second, Burst: 5}},
}

func main() {
	redis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// demonstrate delivers events and tells whether every limit was kept on the way.
func demonstrate(ctx context.Context, s settings, out output) error {
	receiver, err := startReceiver()
	if err != nil {
		return &failure{exitNoRun, err}
	}
	defer receiver.close()
	destinations, err := s.destinations(receiver.base)
	if err != nil {
		return &failure{exitInvalid, err}
	}
	receiver.expect(destinations)

	if err := deliver(ctx, s.redis, destinations, receiver, out); err != nil {
		if ctx.Err() != nil {
			return &failure{exitInterrupted, fmt.Errorf("interrupted: %s delivered", receiver.tally())}
		}
		var known *failure
		if errors.As(err, &known) {
			return known
		}
		if errors.Is(err, throttle.ErrInvalid) {
			return &failure{exitInvalid, err}
		}
		return &failure{exitNoRun, err}
	}

	return conclude(s, destinations, receiver.seen(), out)
}

// conclude judges the arrivals and shows them.
func conclude(s settings, destinations []destination, arrivals []arrival, out output) error {
	verdict, err := judge(destinations, arrivals)
	if err != nil {
		return &failure{exitNoRun, err}
	}
	undrawn := drawChart(s.plot, destinations, arrivals)
	if err := verdict.write(out.results, s.plot, s.json); err != nil {
		return &failure{exitNoRun, err}
	}
	if err := verdict.failure(); err != nil {
		return err
	}
	if undrawn != nil {
		return &failure{exitNoRun, fmt.Errorf("--out: %w", undrawn)}
	}
	return nil
}

// retryBase is far below the default of one second: the retries are to join the
// backlog, where they can be seen waiting for their turn like every other job.
const retryBase = 200 * time.Millisecond

// deliver takes the events through Weir, and returns when the receiver has
// accepted them all or nothing more is to be expected.
func deliver(ctx context.Context, redisURL string, destinations []destination, receiver *receiver, out output) error {
	client, closeRedis, err := openRedis(ctx, redisURL, out.notes)
	if err != nil {
		return err
	}
	defer closeRedis()
	logger := slog.New(slog.NewTextHandler(out.notes, &slog.HandlerOptions{Level: slog.LevelWarn}))

	// The queue is the way to all that is stored. Policies say what a key's limit
	// is; they may be set again at any time, and hold for jobs that wait already.
	queue, err := throttle.NewQueue(ctx, client, throttle.QueueConfig{Logger: logger})
	if err != nil {
		return err
	}
	if err := queue.SetPolicies(ctx, policies(destinations)); err != nil {
		return err
	}

	// A producer enqueues, here all at once and before anybody works, so that each
	// key has its whole backlog from the start. No job is refused for being over
	// the limit: it waits.
	jobs, err := callsTo(receiver, destinations)
	if err != nil {
		return err
	}
	if _, err := queue.EnqueueMany(ctx, jobs); err != nil {
		return errors.Join(err, withdraw(context.WithoutCancel(ctx), queue, destinations))
	}

	// A scheduler releases each job shortly before its slot, and hands it to a
	// worker. Any number of them may run, in any number of processes.
	scheduler, err := throttle.NewScheduler(queue, worker.NewDispatcher(client), throttle.SchedulerConfig{})
	if err != nil {
		return err
	}

	// A worker lets each job leave at its slot and runs its handler. Handlers are
	// those of asynq: add your own job types to the mux.
	server, err := worker.NewServer(client, queue, worker.Config{
		Retry:  worker.RetryPolicy{Base: retryBase},
		Logger: logger,
	})
	if err != nil {
		return err
	}
	// Calls reach public addresses only, unless told otherwise: the receiver is on this machine.
	calls := httpjob.NewHandler(httpjob.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	defer calls.CloseIdleConnections()
	mux := asynq.NewServeMux()
	mux.Handle(httpjob.Type, calls)

	// Both run until their context ends, which an interrupt does not end at once:
	// what is on its way may arrive.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	parts, running := errgroup.WithContext(running)
	parts.Go(func() error { return scheduler.Run(running) })
	parts.Go(func() error { return server.Run(running, mux) })

	watched := watch(ctx, running, destinations, receiver, out)
	if err := withdraw(running, queue, destinations); err != nil {
		logger.Warn("jobs left behind", "error", err)
	}
	stop()
	if err := parts.Wait(); err != nil {
		return err
	}
	return watched
}

// policies are the limits in the form that the queue keeps them in.
func policies(destinations []destination) []throttle.Policy {
	var all []throttle.Policy
	for _, d := range destinations {
		all = append(all, throttle.Policy{Key: d.key, Limit: d.limit})
	}
	return all
}

// callsTo makes each event a job: one HTTP call to the receiver, under the key of
// its destination.
func callsTo(receiver *receiver, destinations []destination) ([]throttle.Job, error) {
	var jobs []throttle.Job
	for _, d := range destinations {
		for _, e := range d.events {
			job, err := httpjob.Request{
				URL:     receiver.url(d.key, e.id),
				Headers: map[string]string{"Content-Type": "application/json"},
				Body:    e.body,
			}.Job(d.key)
			if err != nil {
				return nil, err
			}
			job.ID = e.id // enqueueing the same id again changes nothing
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

// withdraw takes back the jobs that still wait, and returns when those on their way
// have ended: the receiver is about to go. There are none of either kind if all
// went well.
func withdraw(ctx context.Context, queue *throttle.Queue, destinations []destination) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, d := range destinations {
		for {
			if _, err := queue.Purge(ctx, d.key); err != nil {
				return err
			}
			key, err := queue.Key(ctx, d.key)
			if err != nil {
				return err
			}
			if key.Waiting+key.Delayed+key.InFlight == 0 {
				break
			}
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
