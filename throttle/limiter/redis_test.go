package limiter_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/throttle/throttletest/limitertest"
)

func limit(t require.TestingT, rate string, burst int64) throttle.Limit {
	l, err := throttle.ParseLimit(rate, burst)
	require.NoError(t, err)
	return l
}

// eachRule are all algorithms with the same numbers.
func eachRule(n int64, per time.Duration) []limiter.Rule {
	l := throttle.Limit{Rate: n, Period: per, Burst: n}
	return []limiter.Rule{
		limiter.FixedWindow(n, per), limiter.SlidingLog(n, per), limiter.SlidingCounter(n, per),
		limiter.TokenBucket(l), limiter.LeakyBucket(l), limiter.LeakyQueue(l),
	}
}

// onRedis runs a test for each algorithm, on one server that is empty each time.
func onRedis(t *testing.T, n int64, per time.Duration, test func(t *testing.T, client redis.UniversalClient, rule limiter.Rule)) {
	t.Helper()
	client := throttletest.StartRedis(t).Client()
	for _, rule := range eachRule(n, per) {
		t.Run(rule.Algorithm().String(), func(t *testing.T) {
			require.NoError(t, client.FlushAll(context.Background()).Err())
			test(t, client, rule)
		})
	}
}

func newLimiter(t require.TestingT, client redis.UniversalClient, rules ...limiter.Rule) *limiter.Limiter {
	l, err := limiter.New(limiter.NewRedis(client, limiter.RedisConfig{}), "test", rules...)
	require.NoError(t, err)
	return l
}

func allow(t require.TestingT, l *limiter.Limiter, key string) limiter.Result {
	r, err := l.Allow(context.Background(), key)
	require.NoError(t, err)
	return r
}

// timeToLive is that of the only name there is.
func timeToLive(t *testing.T, client redis.UniversalClient) time.Duration {
	t.Helper()
	names, err := client.Keys(context.Background(), "*").Result()
	require.NoError(t, err)
	require.Len(t, names, 1)
	ttl, err := client.PTTL(context.Background(), names[0]).Result()
	require.NoError(t, err)
	return ttl
}

func TestStateExpiresWhenItCountsAsNone(t *testing.T) {
	onRedis(t, 1, 24*time.Hour, func(t *testing.T, client redis.UniversalClient, rule limiter.Rule) {
		t.Helper()
		l := newLimiter(t, client, rule)
		r := allow(t, l, "k")
		require.True(t, r.Allowed)
		ttl := timeToLive(t, client)
		require.LessOrEqual(t, ttl, r.ResetAfter+time.Millisecond)
		require.Greater(t, ttl, r.ResetAfter-time.Minute)
		require.False(t, allow(t, l, "k").Allowed)
	})
}

// At a very high rate what is stored lasts less than a millisecond, the shortest expiry there is: the clock
// stands still to see it.
func TestStateOfAVeryHighRateIsStored(t *testing.T) {
	for _, rule := range []limiter.Rule{limiter.TokenBucket(limit(t, "1000000/s", 1000)), limiter.LeakyBucket(limit(t, "1000000/s", 1000))} {
		m := miniredis.RunT(t)
		m.ClockTTL(true)
		m.SetTime(limitertest.Epoch)
		client := redis.NewClient(&redis.Options{Addr: m.Addr()})
		require.True(t, allow(t, newLimiter(t, client, rule), "k").Allowed)
		require.GreaterOrEqual(t, timeToLive(t, client), time.Millisecond)
		require.NoError(t, client.Close())
	}
}

func TestDenialsWriteNothing(t *testing.T) {
	onRedis(t, 1, time.Hour, func(t *testing.T, client redis.UniversalClient, rule limiter.Rule) {
		t.Helper()
		ctx := context.Background()
		l := newLimiter(t, client, rule)
		require.True(t, allow(t, l, "k").Allowed)
		name := "weir:{test:k}"
		before, err := client.Dump(ctx, name).Result()
		require.NoError(t, err)
		expires, err := client.PExpireTime(ctx, name).Result()
		require.NoError(t, err)
		for range 100 {
			require.False(t, allow(t, l, "k").Allowed)
			_, err := l.Peek(ctx, "k")
			require.NoError(t, err)
		}
		after, err := client.Dump(ctx, name).Result()
		require.NoError(t, err)
		require.Equal(t, before, after)
		same, err := client.PExpireTime(ctx, name).Result()
		require.NoError(t, err)
		require.Equal(t, expires, same)
	})
}

func TestEveryNameExpires(t *testing.T) {
	t.Run("planted", func(t *testing.T) {
		onRedis(t, 1, 100*time.Millisecond, func(t *testing.T, client redis.UniversalClient, rule limiter.Rule) {
			t.Helper()
			require.NoError(t, client.Set(context.Background(), "weir:{test:k}", 3_000_000, 0).Err())
			l := newLimiter(t, client, rule)
			allow(t, l, "k")
			ttl := timeToLive(t, client)
			require.Positive(t, ttl)
			require.LessOrEqual(t, ttl, 200*time.Millisecond)
			require.Eventually(t, func() bool { return allow(t, l, "k").Allowed }, time.Second, 10*time.Millisecond)
		})
	})
	t.Run("clients killed", func(t *testing.T) {
		onRedis(t, 1000, time.Hour, func(t *testing.T, client redis.UniversalClient, rule limiter.Rule) {
			t.Helper()
			ctx := context.Background()
			for i := range 40 {
				victim := redis.NewClient(&redis.Options{Addr: client.(*redis.Client).Options().Addr, Password: client.(*redis.Client).Options().Password})
				l := newLimiter(t, victim, rule)
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = l.Allow(ctx, fmt.Sprintf("k%d", i)) })
				require.NoError(t, victim.Close())
				wg.Wait()
			}
			names, err := client.Keys(ctx, "weir:*").Result()
			require.NoError(t, err)
			for _, name := range names {
				ttl, err := client.PTTL(ctx, name).Result()
				require.NoError(t, err)
				require.Positive(t, ttl, name)
			}
		})
	})
}

// Whatever stands where a state belongs counts as none, is told of once, and is repaired by the
// next charge.
func TestDamagedStateCountsAsNone(t *testing.T) {
	for _, damage := range []struct {
		name string
		do   []any
	}{
		{"text", []any{"SET", "weir:{test:k}", "abc"}},
		{"empty", []any{"SET", "weir:{test:k}", ""}},
		{"half of it", []any{"SET", "weir:{test:k}", "1700000000000000 1"}},
		{"negative", []any{"SET", "weir:{test:k}", "-5 -5 -5 -5 -5"}},
		{"beyond numbers", []any{"SET", "weir:{test:k}", "1e300 nan inf 4 5"}},
		{"almost a number", []any{"SET", "weir:{test:k}", "1800000000000000e01"}},
		{"infinite items", []any{"RPUSH", "weir:{test:k}", "inf", "inf"}},
		{"a hash", []any{"HSET", "weir:{test:k}", "a", "b"}},
		{"a list", []any{"RPUSH", "weir:{test:k}", "abc", "nan"}},
	} {
		t.Run(damage.name, func(t *testing.T) {
			onRedis(t, 3, time.Hour, func(t *testing.T, client redis.UniversalClient, rule limiter.Rule) {
				t.Helper()
				ctx := context.Background()
				var logged bytes.Buffer
				store := limiter.NewRedis(client, limiter.RedisConfig{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
				l, err := limiter.New(store, "test", rule)
				require.NoError(t, err)
				for range 3 {
					require.True(t, allow(t, l, "k").Allowed)
				}
				require.NoError(t, client.Del(ctx, "weir:{test:k}").Err())
				require.NoError(t, client.Do(ctx, damage.do...).Err())
				passed := 0
				for range 10 {
					if allow(t, l, "k").Allowed {
						passed++
					}
				}
				require.Equal(t, 3, passed)
				require.Equal(t, 1, strings.Count(logged.String(), "\n"), logged.String())
				require.Contains(t, logged.String(), "key=k")
				require.Positive(t, timeToLive(t, client))
			})
		})
	}
}

func TestDeadlineCutsAStalledCall(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	l := newLimiter(t, client, limiter.LeakyBucket(limit(t, "10/s", 10)))
	allow(t, l, "k")
	require.NoError(t, client.Do(context.Background(), "CLIENT", "PAUSE", 1000, "ALL").Err())
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	started := time.Now()
	_, err := l.Allow(ctx, "k")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, `limiter test: key "k"`)
	require.Less(t, time.Since(started), 500*time.Millisecond)
}

func TestScriptsAreSentAgain(t *testing.T) {
	onRedis(t, 5, time.Hour, func(t *testing.T, client redis.UniversalClient, rule limiter.Rule) {
		t.Helper()
		ctx := context.Background()
		l := newLimiter(t, client, rule)
		for _, call := range []func() error{
			func() error { return l.Reset(ctx, "k") },
			func() error { _, err := l.Allow(ctx, "k"); return err },
			func() error { _, err := l.AllowMany(ctx, limiter.Call{Key: "k"}, limiter.Call{Key: "l"}); return err },
			func() error {
				r, err := l.Reserve(ctx, "k", 5, limiter.Forever)
				if err != nil {
					return err
				}
				require.NoError(t, client.ScriptFlush(ctx).Err())
				return r.Cancel(ctx)
			},
		} {
			require.NoError(t, client.ScriptFlush(ctx).Err())
			require.NoError(t, call())
		}
	})
}

func TestManyKeysAtOnce(t *testing.T) {
	ctx := context.Background()
	check := func(t *testing.T, store limiter.Store) {
		t.Helper()
		l, err := limiter.New(store, "many", limiter.TokenBucket(limit(t, "1/h", 3)), limiter.FixedWindow(100, time.Hour))
		require.NoError(t, err)
		var calls []limiter.Call
		for i := range 100 {
			key := fmt.Sprintf("k}%d", i)
			calls = append(calls, limiter.Call{Key: key}, limiter.Call{Key: key, Cost: 3}, limiter.Call{Key: key, Cost: 2}, limiter.Call{Key: key})
		}
		results, err := l.AllowMany(ctx, calls...)
		require.NoError(t, err)
		for i, r := range results {
			require.Equal(t, i%4 == 0 || i%4 == 2, r.Allowed, "call %d", i)
			require.Equal(t, []int64{2, 2, 0, 0}[i%4], r.Remaining, "call %d", i)
		}
		none, err := l.AllowMany(ctx)
		require.NoError(t, err)
		require.Empty(t, none)
	}
	t.Run("memory", func(t *testing.T) { check(t, limiter.NewMemory(limiter.MemoryConfig{})) })
	t.Run("redis", func(t *testing.T) {
		r := throttletest.StartRedis(t)
		check(t, limiter.NewRedis(r.Client(), limiter.RedisConfig{}))
		l := newLimiter(t, r.Client(), limiter.FixedWindow(1, time.Hour))
		require.NoError(t, r.Stop())
		results, err := l.AllowMany(ctx, limiter.Call{Key: "a"}, limiter.Call{Key: "b"})
		require.Error(t, err)
		require.Equal(t, make([]limiter.Result, 2), results)
	})
	t.Run("cluster", func(t *testing.T) {
		check(t, limiter.NewRedis(throttletest.StartCluster(t).Client(), limiter.RedisConfig{}))
	})
}

// A name can be of any length and have any characters: what the rules of one key are stored under
// differs from what those of all others are.
func TestKeysDoNotMix(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	keys := []string{"}", "}1", "}2", "a", "a1", "a}", "a}1", "{a}", "{", "", " ", ":", "a:b", "é", strings.Repeat("x", 512)}
	for _, name := range []string{"test", "test1", "t"} {
		l, err := limiter.New(limiter.NewRedis(client, limiter.RedisConfig{}), name, eachRule(1, time.Hour)[:5]...)
		require.NoError(t, err)
		for _, key := range keys {
			if key != "" {
				require.True(t, allow(t, l, key).Allowed, "%s %q", name, key)
			}
		}
	}
}
