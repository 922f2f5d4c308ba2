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

// A target is a Redis to connect to, and how errors speak of it.
type target struct {
	url    string
	origin func(setting string) string // where it was given, to begin an error with
	wayOut string                      // what can be done where no Redis is
	config throttle.QueueConfig
}

// connectTime bounds the first talk with Redis.
const connectTime = 5 * time.Second

// connect opens the Redis and the queue on it. The client is the caller's to close.
func (t target) connect(ctx context.Context) (redis.UniversalClient, *throttle.Queue, error) {
	client, err := throttle.Open(t.url)
	if err != nil {
		return nil, nil, fail(exitInvalid, "%s%w", t.origin("redis"), notConnected(err))
	}
	connecting, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	queue, err := throttle.NewQueue(connecting, client, t.config)
	if err == nil {
		return client, queue, nil
	}
	_ = client.Close()
	var refused *throttle.InvalidError
	var unreachable *net.OpError
	switch {
	case errors.As(err, &refused):
		return nil, nil, fail(exitInvalid, "%s%w", t.origin(refused.Field), err)
	case connecting.Err() != nil:
		return nil, nil, fail(exitRedis, "%scannot use %s: no answer within %v", t.origin("redis"), redacted(t.url), connectTime)
	case errors.As(err, &unreachable):
		return nil, nil, fail(exitRedis, "%scannot use %s: %w; %s", t.origin("redis"), redacted(t.url), err, t.wayOut)
	}
	return nil, nil, fail(exitRedis, "%scannot use %s: %w", t.origin("redis"), redacted(t.url), err)
}

// notConnected is the refusal of a Redis URL, also where nothing of it can be shown.
func notConnected(err error) error {
	var refused *throttle.InvalidError
	if errors.As(err, &refused) && refused.Value == "…" {
		return fmt.Errorf("this is not a Redis URL: want %s", refused.Allowed)
	}
	return err
}
