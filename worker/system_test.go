package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// patience bounds every wait for something that has to happen. It is for machines
// that stall; how soon a thing has to happen is checked where it matters.
const patience = 60 * time.Second

// system is a Redis with a queue on it, and the schedulers and workers of a test.
type system struct {
	tb     testing.TB
	redis  *throttletest.Redis
	client redis.UniversalClient
	queue  *throttle.Queue
	limits map[string]throttle.Limit
}

func newSystem(tb testing.TB, args ...string) *system {
	tb.Helper()
	s := &system{tb: tb, redis: throttletest.StartRedis(tb, args...), limits: map[string]throttle.Limit{}}
	s.client, s.queue = s.connect()
	return s
}

// connect is what another process would do.
func (s *system) connect() (redis.UniversalClient, *throttle.Queue) {
	s.tb.Helper()
	client, err := throttle.Open(s.redis.URL())
	require.NoError(s.tb, err)
	s.tb.Cleanup(func() { _ = client.Close() })
	queue, err := throttle.NewQueue(s.tb.Context(), client, throttle.QueueConfig{})
	require.NoError(s.tb, err)
	return client, queue
}

// limit sets the limits of keys beside those set before. In flight may be as many
// as the tests have jobs.
func (s *system) limit(rate string, burst int64, keys ...string) {
	s.tb.Helper()
	l, err := throttle.ParseLimit(rate, burst)
	require.NoError(s.tb, err)
	for _, key := range keys {
		s.limits[key] = l
	}
	var policies []throttle.Policy
	for key, l := range s.limits {
		policies = append(policies, throttle.Policy{Key: key, Limit: l, MaxInFlight: 10_000})
	}
	require.NoError(s.tb, s.queue.SetPolicies(s.tb.Context(), policies))
}

func (s *system) enqueue(jobs ...throttle.Job) {
	s.tb.Helper()
	_, err := s.queue.EnqueueMany(s.tb.Context(), jobs)
	require.NoError(s.tb, err)
}

// jobs makes n jobs of a key with the ids 1 to n.
func jobs(key string, n int) []throttle.Job {
	list := make([]throttle.Job, n)
	for i := range list {
		list[i] = throttle.Job{Key: key, ID: strconv.Itoa(i + 1), Type: "test"}
	}
	return list
}

// number is the inverse of the ids of jobs.
func number(tb testing.TB, id string) int {
	tb.Helper()
	n, err := strconv.Atoi(id)
	if err != nil {
		tb.Errorf("job id %q: %v", id, err)
	}
	return n
}

func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i + 1)
	}
	return list
}

// part is a scheduler or a worker that runs. It ends with the test if not before.
type part struct {
	tb     testing.TB
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

func (s *system) run(run func(context.Context) error) *part {
	s.tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{tb: s.tb, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = run(ctx)
	}()
	s.tb.Cleanup(p.stop)
	return p
}

// stop ends the part and waits for its end.
func (p *part) stop() {
	p.tb.Helper()
	p.cancel()
	p.wait()
}

// wait waits for the end of a part that was told to end.
func (p *part) wait() {
	p.tb.Helper()
	select {
	case <-p.ended:
		require.NoError(p.tb, p.err)
	case <-time.After(patience):
		require.Fail(p.tb, "it does not end")
	}
}

func (s *system) schedule() *part { return s.scheduleWith(throttle.SchedulerConfig{}, nil) }

// scheduleWith starts a scheduler; a nil dispatcher is one on asynq.
func (s *system) scheduleWith(config throttle.SchedulerConfig, d throttle.Dispatcher) *part {
	s.tb.Helper()
	if d == nil {
		d = worker.NewDispatcher(s.client)
	}
	scheduler, err := throttle.NewScheduler(s.queue, d, config)
	require.NoError(s.tb, err)
	return s.run(scheduler.Run)
}

func (s *system) work(config worker.Config, handler asynq.HandlerFunc) *part {
	s.tb.Helper()
	server, err := worker.NewServer(s.client, s.queue, config)
	require.NoError(s.tb, err)
	return s.run(func(ctx context.Context) error { return server.Run(ctx, handler) })
}

// empty waits until no job of the keys is left, so that all ends are told.
func (s *system) empty(keys ...string) {
	s.tb.Helper()
	for _, key := range keys {
		s.eventually(func() bool {
			k, err := s.queue.Key(context.Background(), key)
			return err == nil && k.Waiting+k.Delayed+k.InFlight == 0
		}, "key %s has jobs left", key)
	}
}

func (s *system) eventually(condition func() bool, message string, args ...any) {
	s.tb.Helper()
	require.Eventually(s.tb, condition, patience, 2*time.Millisecond, append([]any{message}, args...)...)
}

// dead returns the dead letters of a key.
func (s *system) dead(key string) []throttle.ListedJob {
	s.tb.Helper()
	page, err := s.queue.Jobs(s.tb.Context(), key, throttle.Dead, throttle.Page{Limit: 1000})
	require.NoError(s.tb, err)
	return page.Jobs
}

// state tells the state of a job of a key.
func (s *system) state(key, id string) throttle.JobInfo {
	s.tb.Helper()
	job, err := s.queue.Job(s.tb.Context(), key, id)
	require.NoError(s.tb, err)
	return job
}

// call is one call of a handler.
type call struct {
	worker.Info
	began   time.Time
	payload []byte
	headers map[string]string
}

// calls are the calls of a run, in the order they began.
type calls struct {
	tb   testing.TB
	mu   sync.Mutex
	seen []call
}

func (s *system) calls() *calls { return &calls{tb: s.tb} }

// handler notes each call and leaves the rest to then, if there is one.
func (c *calls) handler(then func(ctx context.Context, job call) error) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) error {
		info, ok := worker.JobFrom(ctx)
		if !ok {
			c.tb.Error("a handler's context has no job")
		}
		job := call{Info: info, began: time.Now(), payload: task.Payload(), headers: task.Headers()}
		c.mu.Lock()
		c.seen = append(c.seen, job)
		c.mu.Unlock()
		if then == nil {
			return nil
		}
		return then(ctx, job)
	}
}

// of returns the calls of a key so far; an empty key means all.
func (c *calls) of(key string) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []call
	for _, j := range c.seen {
		if key == "" || j.Key == key {
			list = append(list, j)
		}
	}
	return list
}

// wait returns the calls of a key once there are n of them.
func (c *calls) wait(key string, n int) []call {
	c.tb.Helper()
	require.Eventually(c.tb, func() bool { return len(c.of(key)) >= n }, patience, 2*time.Millisecond,
		"there are too few calls of %q", key)
	return c.of(key)
}

// idsOf lists the jobs of calls.
func idsOf(list []call) []string {
	out := make([]string, len(list))
	for i, j := range list {
		out[i] = j.ID
	}
	return out
}

// report measures how a key kept its limit. Each attempt counts as a job of its own.
func (s *system) report(c *calls, key string, expected []string) throttletest.Report {
	s.tb.Helper()
	var events []throttletest.Event
	for _, j := range c.of(key) {
		id := j.ID
		if j.Attempt > 1 {
			id = fmt.Sprintf("%s#%d", j.ID, j.Attempt)
		}
		events = append(events, throttletest.Event{Key: key, ID: id, At: j.Departed, Cost: j.Cost})
	}
	slices.SortStableFunc(events, func(a, b throttletest.Event) int { return a.At.Compare(b.At) })
	reports, err := throttletest.Measure(map[string]throttle.Limit{key: s.limits[key]}, events, map[string][]string{key: expected})
	require.NoError(s.tb, err)
	return reports[0]
}
