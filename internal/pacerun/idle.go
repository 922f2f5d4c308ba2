package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
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
		if err := rest(ctx, 15*time.Millisecond); err != nil { // until all is quiet again
			return err
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
	if err := rest(ctx, quiet); err != nil {
		return err
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
