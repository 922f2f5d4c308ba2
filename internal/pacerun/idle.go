package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

// idle measures the way of a single job through a system with nothing to do, and
// what such a system asks of Redis.
func idle(ctx context.Context, s *sheet, e *env) error {
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: "idle", Limit: limit("1000/s", 1000)})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	const n = 300
	var trips []time.Duration
	jobs, _ := calls(r, "idle", n)
	for i, job := range jobs {
		sent := time.Now()
		if _, err := sys.queue.Enqueue(ctx, job); err != nil {
			return err
		}
		if err := until(ctx, 5*time.Second, func() bool { return r.count() == i+1 }); err != nil {
			return err
		}
		trips = append(trips, r.events()[i].At.Sub(sent))
		select {
		case <-time.After(15 * time.Millisecond): // until all is quiet again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	slices.Sort(trips)
	s.atMost("enqueue to arrival p50, ms", ms(trips[n/2]), 3)
	s.atMost("enqueue to arrival p99, ms", ms(trips[n*99/100]), 15)

	const quiet = 20 * time.Second
	before, err := commands(ctx, e.client)
	if err != nil {
		return err
	}
	select {
	case <-time.After(quiet):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := commands(ctx, e.client)
	if err != nil {
		return err
	}
	s.atMost("Redis commands/s of an idle process", float64(after-before)/quiet.Seconds(), 20)
	return nil
}

// commands is how many commands clients have sent so far. Redis also counts those
// that scripts run; they are left out by counting what came over connections.
func commands(ctx context.Context, client redis.UniversalClient) (int64, error) {
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	var total int64
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok || inScripts[name] {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read command statistics: %w", err)
		}
		total += n
	}
	return total, nil
}

// inScripts are the commands that an idle system runs from within its scripts.
var inScripts = map[string]bool{
	"time": true, "get": true, "set": true, "exists": true, "rpoplpush": true,
	"zrangebyscore": true, "zrange": true, "hmget": true, "zcard": true, "llen": true,
}

// attempts passes tasks on and counts the attempts that handlers were told of.
type attempts struct {
	next asynq.Handler
	mu   sync.Mutex
	seen map[string][]int
}

func (a *attempts) ProcessTask(ctx context.Context, t *asynq.Task) error {
	info, _ := worker.JobFrom(ctx)
	a.mu.Lock()
	if a.seen == nil {
		a.seen = make(map[string][]int)
	}
	a.seen[info.ID] = append(a.seen[info.ID], info.Attempt)
	a.mu.Unlock()
	return a.next.ProcessTask(ctx, t)
}

// wrong counts the jobs that were not told of attempts 1 and 2.
func (a *attempts) wrong(jobs int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	wrong := jobs - len(a.seen)
	for _, told := range a.seen {
		if !slices.Equal(told, []int{1, 2}) {
			wrong++
		}
	}
	return wrong
}
