package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// system is schedulers and workers in this process, on one Redis.
type system struct {
	client redis.UniversalClient
	queue  *throttle.Queue

	mu       sync.Mutex
	stop     []func()
	departed []throttletest.Event
}

// logger shows warnings, so that a run that went wrong says why.
var logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

func newSystem(ctx context.Context, client redis.UniversalClient, policies ...throttle.Policy) (*system, error) {
	queue, err := throttle.NewQueue(ctx, client, throttle.QueueConfig{Logger: logger})
	if err != nil {
		return nil, err
	}
	if err := queue.SetPolicies(ctx, policies); err != nil {
		return nil, err
	}
	return &system{client: client, queue: queue}, nil
}

// run starts a part and remembers how to stop it. The returned func stops it and
// waits.
func (s *system) run(name string, part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := part(ctx); err != nil {
			logger.Error(name+" failed", "error", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	s.mu.Lock()
	s.stop = append(s.stop, stop)
	s.mu.Unlock()
	return stop
}

func (s *system) schedule() error {
	scheduler, err := throttle.NewScheduler(s.queue, worker.NewDispatcher(s.client), throttle.SchedulerConfig{})
	if err != nil {
		return err
	}
	s.run("scheduler", scheduler.Run)
	return nil
}

// loopback is where the receiver is.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// work runs a worker that makes the HTTP calls.
func (s *system) work(config worker.Config) (stop func(), err error) {
	return s.handle(config, httpjob.NewHandler(httpjob.Config{AllowNetworks: loopback}))
}

func (s *system) handle(config worker.Config, handler asynq.Handler) (stop func(), err error) {
	config.Logger = logger
	server, err := worker.NewServer(s.client, s.queue, config)
	if err != nil {
		return nil, err
	}
	return s.run("worker", func(ctx context.Context) error { return server.Run(ctx, s.noting(handler)) }), nil
}

// noting writes down when jobs leave, which tells what the way to the receiver adds.
func (s *system) noting(handler asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		job, _ := worker.JobFrom(ctx)
		s.mu.Lock()
		s.departed = append(s.departed, throttletest.Event{Key: job.Key, ID: job.ID, At: job.Departed, Cost: job.Cost})
		s.mu.Unlock()
		return handler.ProcessTask(ctx, task)
	})
}

// departures are those of workers in this process.
func (s *system) departures() []throttletest.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.departed
}

func (s *system) start() error {
	if err := s.schedule(); err != nil {
		return err
	}
	_, err := s.work(worker.Config{})
	return err
}

// close stops the parts, the last one first.
func (s *system) close() {
	s.mu.Lock()
	stop := slices.Clone(s.stop)
	s.mu.Unlock() // jobs that still depart are written down
	for _, part := range slices.Backward(stop) {
		part()
	}
}

// call is a job that posts to the receiver, which learns key and id from the path.
func call(r *receiver, key, id string) throttle.Job {
	job, err := httpjob.Request{URL: r.url(key, id), Method: "POST", Body: []byte(`{"n":1}`)}.Job(key)
	if err != nil {
		panic(err) // made of this program's own constants
	}
	job.ID = id
	return job
}

func calls(r *receiver, key string, n int) (jobs []throttle.Job, ids []string) {
	for i := range n {
		id := fmt.Sprintf("%s-%06d", strings.ReplaceAll(key, " ", "_"), i)
		ids = append(ids, id)
		jobs = append(jobs, call(r, key, id))
	}
	return jobs, ids
}
