package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

// What an answer may take, ms: for programs, and for people.
const (
	client = 2
	people = 500
)

// million has a million jobs wait on ten thousand keys, and measures what one client
// waits for an answer then.
func million(ctx context.Context, s *sheet, e *env) error {
	const keys, each, asked = 10_000, 100, 5000
	m, err := fill(ctx, s, e, keys, each)
	if err != nil {
		return err
	}
	key := func() string { return fmt.Sprintf("key-%06d", m.random.IntN(keys)) }
	job := func() (string, string) { return key(), fmt.Sprintf("%d", m.random.IntN(each)) }
	for _, op := range []struct {
		name  string
		bound float64 // ms
		do    func(i int) error
	}{
		{"enqueue", client, func(i int) error {
			_, err := m.queue.Enqueue(ctx, throttle.Job{Key: key(), ID: fmt.Sprint("more-", i), Type: "t", Payload: m.payload})
			return err
		}},
		{"look-up and position", client, func(int) error {
			key, id := job()
			_, err := m.queue.Job(ctx, key, id)
			return err
		}},
		{"cancel", client, func(i int) error {
			_, err := m.queue.Cancel(ctx, fmt.Sprintf("key-%06d", 2*i%keys), fmt.Sprint(i%each))
			return err
		}},
		{"list of 50", people, func(int) error {
			_, err := m.queue.Jobs(ctx, key(), throttle.Waiting, throttle.Page{})
			return err
		}},
		{"explain", people, func(int) error {
			_, err := m.queue.Explain(ctx, key())
			return err
		}},
		{"stats", people, func(int) error {
			_, err := m.queue.Stats(ctx)
			return err
		}},
	} {
		if err := m.measure(s, op.name, asked, op.bound, op.do); err != nil {
			return err
		}
	}
	return m.slowest(ctx, s)
}

// keyMillion has a million keys with a job each, and asks for what a dashboard asks.
func keyMillion(ctx context.Context, s *sheet, e *env) error {
	const keys = 1_000_000
	m, err := fill(ctx, s, e, keys, 1)
	if err != nil {
		return err
	}
	page := throttle.Page{Limit: 50}
	for _, op := range []struct {
		name string
		do   func(i int) error
	}{
		{"stats", func(int) error { _, err := m.queue.Stats(ctx); return err }},
		{"page of 50 keys", func(int) error {
			p, err := m.queue.Keys(ctx, throttle.AnyKey, page)
			page.Cursor = p.Next
			return err
		}},
		{"key", func(int) error {
			_, err := m.queue.Key(ctx, fmt.Sprintf("key-%06d", m.random.IntN(keys)))
			return err
		}},
		{"page of dead letters", func(int) error { _, err := m.queue.DeadLetters(ctx, throttle.Page{}); return err }},
		{"change of the default policy", func(i int) error {
			return m.queue.SetPolicy(ctx, throttle.Policy{Key: throttle.AnyKey, Limit: limit("10/m", int64(1+i%2))})
		}},
	} {
		if err := m.measure(s, op.name, 300, people, op.do); err != nil {
			return err
		}
	}
	if err := m.slowest(ctx, s); err != nil {
		return err
	}
	return m.drain(ctx, s, e)
}

// drain has all jobs run, and sees what is left of their keys, in Redis and here.
func (m *multitude) drain(ctx context.Context, s *sheet, e *env) error {
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: throttle.AnyKey, Limit: limit("1000/s", 1000)})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := sys.queue.RemovePolicy(ctx, throttle.AnyKey); err != nil { // the live one
		return err
	}
	if err := sys.schedule(); err != nil {
		return err
	}
	server, err := worker.NewServer(e.client, sys.queue, worker.Config{Concurrency: 2000, Logger: logger})
	if err != nil {
		return err
	}
	sys.run("worker", func(ctx context.Context) error {
		return server.Run(ctx, asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil }))
	})
	started := time.Now()
	left := func() int64 {
		t, err := sys.queue.Stats(ctx)
		if err != nil {
			return 1
		}
		return t.Waiting + t.Delayed + t.InFlight
	}
	all, before := left(), 0.0
	if err := until(ctx, 10*time.Minute, func() bool {
		n := left()
		if before == 0 && n < all-all/20 { // all that a process needs to run at all is there
			before = heap()
		}
		fmt.Fprintf(os.Stderr, "\r%d jobs left  ", n)
		return n == 0 || rest(ctx, time.Second) != nil
	}); err != nil {
		return err
	}
	s.add("drained in, s", time.Since(started).Seconds(), "", true)
	if err := rest(ctx, 65*time.Second); err != nil { // longer than any reply is kept
		return err
	}
	names, err := e.client.DBSize(ctx).Result()
	if err != nil {
		return err
	}
	s.atMost("names left in Redis", float64(names), 200)
	s.add("heap of the process at 1/20 of the keys, MiB", before, "", true)
	s.atMost("heap of the process in the end, MiB", heap(), 1.2*before)
	return nil
}

// heap is what the process holds, MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// multitude is a system in which very many jobs wait, and a client beside it.
type multitude struct {
	client  redis.UniversalClient
	queue   *throttle.Queue
	random  *rand.Rand
	payload []byte
}

func fill(ctx context.Context, s *sheet, e *env, keys, each int) (*multitude, error) {
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: throttle.AnyKey, Limit: limit("1/h", 1)})
	if err != nil {
		return nil, err
	}
	m := &multitude{client: e.client, queue: sys.queue, random: rand.New(rand.NewPCG(1, 2)), payload: make([]byte, 200)}
	started := time.Now()
	for i := 0; i < keys*each; {
		var batch []throttle.Job
		for ; len(batch) < 5000 && i < keys*each; i++ {
			batch = append(batch, throttle.Job{Key: fmt.Sprintf("key-%06d", i%keys), ID: fmt.Sprint(i / keys), Type: "t", Payload: m.payload})
		}
		if _, err := m.queue.EnqueueMany(ctx, batch); err != nil {
			return nil, err
		}
		fmt.Fprintf(os.Stderr, "\r%d of %d jobs wait", i, keys*each)
	}
	fmt.Fprintln(os.Stderr)
	s.add("enqueued in bulk, jobs/s", float64(keys*each)/time.Since(started).Seconds(), "", true)
	if err := e.client.ConfigSet(ctx, "slowlog-log-slower-than", "2000").Err(); err != nil {
		return nil, err
	}
	if err := e.client.ConfigSet(ctx, "slowlog-max-len", "1000").Err(); err != nil {
		return nil, err
	}
	return m, e.client.Do(ctx, "slowlog", "reset").Err()
}

// measure does something again and again, one at a time.
func (m *multitude) measure(s *sheet, name string, n int, bound float64, do func(i int) error) error {
	took := make([]time.Duration, n)
	for i := range took {
		started := time.Now()
		if err := do(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took[i] = time.Since(started)
	}
	slices.Sort(took)
	s.add(name+" p50, ms", ms(took[n/2]), "", true)
	s.atMost(name+" p99, ms", ms(took[n*99/100]), bound)
	return nil
}

// slowest tells of the command that took Redis longest, as it measured itself.
func (m *multitude) slowest(ctx context.Context, s *sheet) error {
	log, err := m.client.(*redis.Client).SlowLogGet(ctx, 1000).Result()
	if err != nil {
		return err
	}
	worst, slow := time.Duration(0), 0
	for _, entry := range log {
		worst = max(worst, entry.Duration)
		if entry.Duration > 10*time.Millisecond {
			slow++
			fmt.Fprintln(os.Stderr, entry.Duration, entry.Args[:min(3, len(entry.Args))])
		}
	}
	s.add("slowest command, ms (0: below 2)", ms(worst), "", true)
	s.atMost("commands above 10 ms", float64(slow), 0)
	return nil
}
