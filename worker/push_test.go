package worker

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func dequeueKeys(pool string) []string {
	p := "asynq:{" + pool + "}:"
	return []string{p + "pending", p + "paused", p + "active", p + "lease"}
}

func TestDequeueIsRecognisedByItsKeys(t *testing.T) {
	require.True(t, isDequeue(dequeueKeys("default")))
	require.True(t, isDequeue(dequeueKeys("a:b}{c")))
	require.False(t, isDequeue(nil))
	require.False(t, isDequeue(dequeueKeys("default")[:3]))
	require.False(t, isDequeue(append(dequeueKeys("default"), "asynq:{default}:x")))
	keys := dequeueKeys("default")
	slices.Reverse(keys)
	require.False(t, isDequeue(keys))
	require.False(t, isDequeue([]string{"pending", "paused", "active", "lease"}))
}

// scripted answers EvalSha from a list, its last entry for ever, and counts.
type scripted struct {
	redis.UniversalClient
	calls   atomic.Int64
	answers []error
}

func (c *scripted) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	n := int(c.calls.Add(1))
	cmd := redis.NewCmd(ctx)
	cmd.SetErr(c.answers[min(n, len(c.answers))-1])
	return cmd
}

func TestEmptyDequeueWaitsForAMessage(t *testing.T) {
	const pools = 2
	for name, c := range map[string]struct {
		answers []error
		poke    time.Duration // 0: none comes
		waits   time.Duration // of the call that ends a round over the pools
		calls   int64
		err     error
	}{
		"none comes":           {[]error{redis.Nil}, 0, idleWait, 3, redis.Nil},
		"one comes":            {[]error{redis.Nil, redis.Nil, nil}, 100 * time.Millisecond, 100 * time.Millisecond, 3, nil},
		"one in vain":          {[]error{redis.Nil}, 100 * time.Millisecond, 100 * time.Millisecond, 3, redis.Nil},
		"the pool was full":    {[]error{redis.Nil, nil}, 0, 0, 2, nil},
		"another pool was":     {[]error{nil, redis.Nil}, 0, 0, 2, redis.Nil},
		"Redis is in trouble":  {[]error{redis.Nil, io.EOF}, 0, 0, 2, io.EOF},
		"it was, a moment ago": {[]error{io.EOF, redis.Nil}, 0, 0, 2, redis.Nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &scripted{answers: c.answers}
				push := newPushClient(client, pools, nil)
				begin := time.Now()
				if c.poke > 0 {
					time.AfterFunc(c.poke, push.poke)
				}
				if push.EvalSha(t.Context(), "sha", dequeueKeys("a")).Err() == nil {
					push.took()
				}
				require.Zero(t, time.Since(begin), "there is another pool to look at")
				err := push.EvalSha(t.Context(), "sha", dequeueKeys("b")).Err()
				require.Equal(t, c.err, err) // asynq compares by identity
				require.Equal(t, c.waits, time.Since(begin))
				require.Equal(t, c.calls, client.calls.Load())
			})
		})
	}
}

func TestMessageBeforeTheWaitIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		push := newPushClient(&scripted{answers: []error{redis.Nil}}, 1, nil)
		push.poke()
		push.poke() // more than one is one
		begin := time.Now()
		push.EvalSha(t.Context(), "sha", dequeueKeys("a"))
		require.Zero(t, time.Since(begin))
		push.EvalSha(t.Context(), "sha", dequeueKeys("a"))
		require.Equal(t, idleWait, time.Since(begin))
	})
}

// asynq runs tasks in goroutines of their own: if the next were taken before the last
// one is in line, it could overtake.
func TestDequeueWaitsUntilTheLastParcelIsTakenIn(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		took    time.Duration // 0: never
		waits   time.Duration
	}{
		"taken in":            {[]error{nil}, 30 * time.Millisecond, 30 * time.Millisecond},
		"never taken in":      {[]error{nil}, 0, takeWait},
		"there was no parcel": {[]error{io.EOF}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				push := newPushClient(&scripted{answers: c.answers}, 1, nil)
				begin := time.Now()
				push.EvalSha(t.Context(), "sha", dequeueKeys("a"))
				require.Zero(t, time.Since(begin))
				if c.took > 0 {
					time.AfterFunc(c.took, push.took)
				}
				push.EvalSha(t.Context(), "other", []string{"asynq:{a}:lease"})
				require.Zero(t, time.Since(begin), "only dequeues wait")
				push.EvalSha(t.Context(), "sha", dequeueKeys("a"))
				require.Equal(t, c.waits, time.Since(begin))
			})
		})
	}
}

func TestWaitEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		client := &scripted{answers: []error{redis.Nil}}
		push := newPushClient(client, 1, stop)
		time.AfterFunc(20*time.Millisecond, func() { close(stop) })
		begin := time.Now()
		push.EvalSha(t.Context(), "sha", dequeueKeys("a"))
		require.Equal(t, 20*time.Millisecond, time.Since(begin))
		require.EqualValues(t, 1, client.calls.Load(), "a server that stops takes nothing more")
	})
}

func TestOtherScriptsDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		push := newPushClient(&scripted{answers: []error{redis.Nil}}, 1, nil)
		begin := time.Now()
		push.EvalSha(t.Context(), "sha", []string{"asynq:{default}:pending"})
		require.Zero(t, time.Since(begin))
	})
}

// commands counts what a client sends, by name.
type commands struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *commands) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.saw(cmd)
		return next(ctx, cmd)
	}
}

func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.saw(cmds...)
		return next(ctx, cmds)
	}
}

func (c *commands) saw(cmds ...redis.Cmder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = make(map[string]int)
	}
	for _, cmd := range cmds {
		c.count[strings.ToLower(cmd.Name())]++
	}
}

func (c *commands) sum(names ...string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, count := range c.count {
		if len(names) == 0 || slices.Contains(names, name) {
			n += count
		}
	}
	return n
}

// dequeues counts the dequeues that a push client recognises.
type dequeues struct {
	redis.UniversalClient
	seen atomic.Int64
}

func (c *dequeues) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if isDequeue(keys) {
		c.seen.Add(1)
	}
	return c.UniversalClient.EvalSha(ctx, sha, keys, args...)
}

// listening runs asynq as a Server does, on push.
func listening(t *testing.T, client redis.UniversalClient, pools map[string]int, handler asynq.HandlerFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	push := newPushClient(client, len(pools), ctx.Done())
	var listening sync.WaitGroup
	listening.Go(func() { push.listen(ctx) })
	server := asynq.NewServerFromRedisClient(push, asynq.Config{
		Concurrency: 4, Queues: pools, TaskCheckInterval: time.Millisecond,
		Logger: asynqLogger{slog.New(slog.DiscardHandler)}, LogLevel: asynq.WarnLevel,
	})
	require.NoError(t, server.Start(asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		push.took()
		return handler(ctx, task)
	})))
	t.Cleanup(func() {
		cancel()
		server.Shutdown()
		listening.Wait()
	})
	require.Eventually(t, func() bool {
		subscribers, err := client.PubSubNumSub(ctx, wakeChannel).Result()
		return err == nil && subscribers[wakeChannel] == 1
	}, 10*time.Second, 5*time.Millisecond)
}

// This fails if asynq's dequeue changes so that it is not recognised any more: all
// would work on, but polling without end, or late.
func TestAsynqIsPushedTo(t *testing.T) {
	t.Parallel()
	for _, pools := range []map[string]int{{"default": 1}, {"a": 1, "b": 3, "c": 6}} {
		t.Run(fmt.Sprintf("%d pools", len(pools)), func(t *testing.T) {
			server := throttletest.StartRedis(t)
			client, err := throttle.Open(server.URL())
			require.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			counter := &commands{}
			client.AddHook(counter)
			watched := &dequeues{UniversalClient: client}

			arrived := make(chan time.Time, 1)
			listening(t, watched, pools, func(context.Context, *asynq.Task) error {
				arrived <- time.Now()
				return nil
			})
			require.Eventually(t, func() bool { return watched.seen.Load() > 0 }, 10*time.Second, time.Millisecond,
				"asynq's dequeue is not recognised")

			tasks := asynq.NewClientFromRedisClient(server.Client())
			var delays []time.Duration
			for range 7 {
				for pool := range pools {
					_, err := tasks.EnqueueContext(t.Context(), asynq.NewTask("x", nil), asynq.Queue(pool))
					require.NoError(t, err)
					sent := time.Now()
					require.NoError(t, server.Client().Publish(t.Context(), wakeChannel, pool).Err())
					delays = append(delays, (<-arrived).Sub(sent))
				}
			}
			slices.Sort(delays)
			require.Less(t, delays[len(delays)/2], 25*time.Millisecond, "of %v", delays) // 1 or 2 ms where nothing else runs

			// Idle for the time of eight waits.
			begin, before, seen := time.Now(), counter.sum("evalsha", "eval"), watched.seen.Load()
			require.Eventually(t, func() bool { return watched.seen.Load() >= seen+8*int64(len(pools)+1) }, 30*time.Second, 5*time.Millisecond)
			require.Greater(t, time.Since(begin), 4*idleWait, "a late message or two may cut waits short, no more")
			require.LessOrEqual(t, counter.sum("evalsha", "eval")-before, 8*(len(pools)+1)+10, "asynq has a few scripts of its own")
		})
	}
}

func TestWithoutMessagesAsynqStillDelivers(t *testing.T) {
	t.Parallel()
	server := throttletest.StartRedis(t)
	arrived := make(chan struct{})
	listening(t, server.Client(), map[string]int{"default": 1}, func(context.Context, *asynq.Task) error {
		close(arrived)
		return nil
	})
	_, err := asynq.NewClientFromRedisClient(server.Client()).EnqueueContext(t.Context(), asynq.NewTask("x", nil))
	require.NoError(t, err)
	select {
	case <-arrived:
	case <-time.After(10 * idleWait):
		require.Fail(t, "nothing arrived")
	}
}

// A process that has nothing to do leaves Redis alone.
func TestIdleProcessAsksLittle(t *testing.T) {
	t.Parallel()
	client, err := throttle.Open(throttletest.StartRedis(t).URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	counter := &commands{}
	client.AddHook(counter)
	queue, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	server, err := NewServer(client, queue, Config{})
	require.NoError(t, err)
	scheduler, err := throttle.NewScheduler(queue, NewDispatcher(client), throttle.SchedulerConfig{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = server.Run(ctx, asynq.NotFoundHandler()) })
	parts.Go(func() { _ = scheduler.Run(ctx) })
	defer parts.Wait()
	defer cancel()

	const start, some = 80, 64 // more than a start takes, and than two looks at all shards
	require.Eventually(t, func() bool { return counter.sum() >= start }, 60*time.Second, 5*time.Millisecond)
	begin, before := time.Now(), counter.sum()
	require.Eventually(t, func() bool { return counter.sum() >= before+some }, 60*time.Second, 5*time.Millisecond)
	require.Less(t, some/time.Since(begin).Seconds(), 20.0, "commands a second")
}

func TestListeningSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	server := throttletest.StartRedis(t)
	push := newPushClient(server.Client(), 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		push.listen(ctx)
		close(ended)
	}()
	heard := func() bool {
		err := server.Client().Publish(ctx, wakeChannel, "default").Err()
		if err != nil {
			return false
		}
		select {
		case <-push.wake:
			return true
		default:
			return false
		}
	}
	require.Eventually(t, heard, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, server.Restart())
	require.Eventually(t, heard, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, server.Stop())
	cancel()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "it does not end")
	}
}
