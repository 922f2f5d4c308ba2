package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
)

// A target is the queue that jobs go into and the clock that decides there.
type target struct {
	queue  *throttle.Queue
	client redis.UniversalClient
	ahead  time.Duration // how far the clock of Redis is ahead of ours
}

// connect opens the Redis at redisURL, which from gave.
func connect(ctx context.Context, redisURL, from string) (*target, error) {
	client, err := throttle.Open(redisURL)
	if err != nil {
		return nil, &failure{code: exitInvalid, err: notConnected(err, from)}
	}
	t := &target{client: client}
	if t.queue, err = throttle.NewQueue(ctx, client, throttle.QueueConfig{}); err == nil {
		t.ahead, err = clockDifference(ctx, client)
	}
	if err != nil {
		t.close()
		advice := ""
		var dial *net.OpError
		if errors.As(err, &dial) && ctx.Err() == nil {
			advice = ": start one, or set --redis or " + redisEnv
		}
		return nil, &failure{code: exitCode(ctx, err), err: fmt.Errorf("%w; nothing was enqueued%s", err, advice)}
	}
	return t, nil
}

func (t *target) close() { _ = t.client.Close() }

// now is the time by the clock of Redis. Delays count from it and estimates are
// compared with it, so that a clock of this machine that is wrong changes
// neither.
func (t *target) now() time.Time { return time.Now().Add(t.ahead) }

// clockDifference takes our time from the middle of the round trip.
func clockDifference(ctx context.Context, client redis.UniversalClient) (time.Duration, error) {
	before := time.Now()
	theirs, err := client.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("read the clock of Redis: %w", err)
	}
	return theirs.Sub(before.Add(time.Since(before) / 2)), nil
}
