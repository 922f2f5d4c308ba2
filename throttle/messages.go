package throttle

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// listen passes on the wake-up messages of enqueue, depart and finish until ctx ends.
func (s *Scheduler) listen(ctx context.Context) {
	byName := make(map[string]int, len(s.shards))
	for i := range s.shards {
		byName[script.ShardName(i)] = i
	}
	s.store.hear(ctx, script.WakeChannel, func(name string) {
		shard, known := byName[name]
		if !known {
			shard = everyShard
		}
		select {
		case s.wake <- shard:
		case <-ctx.Done():
		}
	})
}

// Cooled calls a function with each key that is told to rest by the other side of its calls, or whose calls are
// cut off, until ctx ends. Jobs of it that were given slots and have not left must not leave. A message may be lost
// with its connection.
func (p *Permits) Cooled(ctx context.Context, each func(key string)) {
	p.store.hear(ctx, script.CoolChannel, func(key string) {
		if key != "" {
			each(key)
		}
	})
}

// hear passes on the messages of a channel until ctx ends, and an empty one whenever some may have been missed.
func (s *store) hear(ctx context.Context, channel string, each func(message string)) {
	for failures := 0; ctx.Err() == nil; failures++ {
		sub := s.client.Subscribe(ctx, channel)
		// Receive does not heed its context while it reads.
		stop := context.AfterFunc(ctx, func() { _ = sub.Close() })
		if hearAll(ctx, sub, each) {
			failures = 0
		}
		if stop() {
			_ = sub.Close()
		}
		sleep(ctx, backoff(failures))
	}
}

// quiet is how long a subscription may say nothing before it has to answer a ping.
const quiet = 10 * time.Second

// hearAll passes on messages until the subscription fails, and tells whether there were any.
func hearAll(ctx context.Context, sub *redis.PubSub, each func(message string)) (any bool) {
	for asked := false; ; {
		msg, err := sub.ReceiveTimeout(ctx, quiet)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() && !asked && sub.Ping(ctx) == nil {
			asked = true
			continue
		}
		if err != nil || ctx.Err() != nil {
			return any
		}
		any, asked = true, false
		switch m := msg.(type) {
		case *redis.Pong:
		case *redis.Message:
			each(m.Payload)
		default: // subscribed: messages may have been missed
			each("")
		}
	}
}
