package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// asynq polls: a server that finds its queues empty sleeps. push turns that into a
// push by standing between asynq and its client: when asynq's dequeue script comes
// back empty, it waits for the dispatcher's message and runs the script once more
// before asynq hears of it. If asynq's dequeue ever looks different nothing is
// recognised, and all works as before, at asynq's own pace.

// wakeChannel carries the name of a pool that has got parcels.
const wakeChannel = "weir:parcels"

// idleWait is how long an empty dequeue waits for a message: what a lost message
// can cost.
const idleWait = 500 * time.Millisecond

// takeWait bounds the wait for a parcel that asynq keeps to itself, because it
// cannot read it.
const takeWait = time.Second

// pushClient is a client for one asynq server, whose dequeues come one at a time.
type pushClient struct {
	redis.UniversalClient
	pools  int
	wake   chan struct{} // holds one message
	handed bool          // asynq has got a parcel that is not known to be taken in
	taken  chan struct{} // holds one message: it is
	stop   <-chan struct{}
	places *places // parcels are left to others while there is no free one; nil for no end of places

	mu    sync.Mutex
	empty int // dequeues in a row that found nothing
}

func newPushClient(client redis.UniversalClient, pools int, stop <-chan struct{}) *pushClient {
	return &pushClient{UniversalClient: client, pools: pools, wake: make(chan struct{}, 1), taken: make(chan struct{}, 1), stop: stop}
}

// isDequeue recognises asynq's dequeue by the names of its keys.
func isDequeue(keys []string) bool {
	if len(keys) != 4 {
		return false
	}
	for i, suffix := range []string{":pending", ":paused", ":active", ":lease"} {
		if !strings.HasPrefix(keys[i], "asynq:{") || !strings.HasSuffix(keys[i], suffix) {
			return false
		}
	}
	return true
}

// EvalSha waits on an empty dequeue once all pools were found empty.
func (c *pushClient) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if !isDequeue(keys) {
		return c.UniversalClient.EvalSha(ctx, sha, keys, args...)
	}
	c.order()
	c.handed = false
	select {
	case <-c.taken: // of a parcel that came another way
	default:
	}
	if !c.hasRoom() {
		nothing := redis.NewCmd(ctx)
		nothing.SetErr(redis.Nil)
		return nothing
	}
	cmd := c.dequeue(ctx, sha, keys, args)
	c.handed = cmd.Err() == nil
	return cmd
}

func (c *pushClient) dequeue(ctx context.Context, sha string, keys []string, args []any) *redis.Cmd {
	cmd := c.UniversalClient.EvalSha(ctx, sha, keys, args...)
	if !errors.Is(cmd.Err(), redis.Nil) {
		c.found(0)
		return cmd
	}
	if c.found(1) < c.pools {
		return cmd
	}
	c.found(0)
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	select {
	case <-c.wake:
	case <-timer.C:
	case <-c.stop:
		return cmd
	}
	return c.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// hasRoom waits for a free place, not for long.
func (c *pushClient) hasRoom() bool {
	if c.places == nil || !c.places.full() {
		return true
	}
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	select {
	case <-c.places.room:
	case <-timer.C:
	case <-c.stop:
	}
	return !c.places.full()
}

// order waits until the parcel of the last dequeue has been taken in. asynq runs
// each in a goroutine of its own, and those overtake each other.
func (c *pushClient) order() {
	if !c.handed {
		return
	}
	timer := time.NewTimer(takeWait)
	defer timer.Stop()
	select {
	case <-c.taken:
	case <-timer.C:
	case <-c.stop:
	}
}

// took tells that a parcel has been taken in.
func (c *pushClient) took() {
	select {
	case c.taken <- struct{}{}:
	default:
	}
}

// found counts a dequeue that found nothing (1) or starts the count anew (0).
func (c *pushClient) found(nothing int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if nothing == 0 {
		c.empty = 0
	} else {
		c.empty++
	}
	return c.empty
}

func (c *pushClient) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// listen passes the dispatchers' messages on until ctx ends.
func (c *pushClient) listen(ctx context.Context) {
	sub := c.Subscribe(ctx, wakeChannel)
	// Receive does not heed its context while it reads.
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })()
	for ctx.Err() == nil {
		if _, err := sub.Receive(ctx); err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond): // Redis is away; asynq polls meanwhile
			}
			continue
		}
		c.poke()
	}
}
