package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// All limit to the same, which none of the calls reaches. It takes a second for each call to be forgotten, so each decision
// finds a state, and writes another.
const (
	perSecond = 1
	burst     = 1_000_000
	keys      = 1000
	batch     = 100
)

// A decider answers for keys, one or more at a time, and tells how many it decided.
type decider struct {
	name   string
	decide func(ctx context.Context, from int) (int, error)
}

func name(i int) string { return fmt.Sprintf("user:%08d", i%keys) }

func deciders(client redis.UniversalClient) ([]decider, error) {
	store := limiter.NewRedis(client, limiter.RedisConfig{})
	own, err := limiter.New(store, "api", limiter.LeakyBucket(throttle.Limit{Rate: perSecond, Period: time.Second, Burst: burst}))
	if err != nil {
		return nil, err
	}
	rate := redis_rate.NewLimiter(client)
	peer, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(peer, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst - 1})
	if err != nil {
		return nil, err
	}
	return []decider{
		{"weir", func(ctx context.Context, from int) (int, error) {
			r, err := own.Allow(ctx, name(from))
			return 1, refused(err, r.Allowed)
		}},
		{"redis_rate", func(ctx context.Context, from int) (int, error) {
			r, err := rate.Allow(ctx, name(from), redis_rate.Limit{Rate: perSecond, Period: time.Second, Burst: burst})
			return 1, refused(err, err == nil && r.Allowed > 0)
		}},
		{"throttled", func(ctx context.Context, from int) (int, error) {
			limited, _, err := gcra.RateLimitCtx(ctx, name(from), 1)
			return 1, refused(err, !limited)
		}},
		{"weir, AllowMany of 100", func(ctx context.Context, from int) (int, error) {
			calls := make([]limiter.Call, batch)
			for i := range calls {
				calls[i].Key = name(from + i)
			}
			r, err := own.AllowMany(ctx, calls...)
			return batch, refused(err, err == nil && r[0].Allowed)
		}},
	}, nil
}

func refused(err error, allowed bool) error {
	if err == nil && !allowed {
		return fmt.Errorf("a call was denied, which none should be")
	}
	return err
}

// decisions compares decisions per second.
func decisions(ctx context.Context, client redis.UniversalClient, t *table, rounds int, span time.Duration) error {
	all, err := deciders(client)
	if err != nil {
		return err
	}
	for _, goroutines := range []int{1, 8, 64} {
		seen := make([][]float64, len(all))
		for round := range rounds {
			fmt.Fprintf(os.Stderr, "\rdecisions, %d goroutines, round %d of %d ", goroutines, round+1, rounds)
			for i := range all {
				d := all[(i+round)%len(all)]
				n, err := perSecondOf(ctx, d, goroutines, span)
				if err != nil {
					return fmt.Errorf("%s: %w", d.name, err)
				}
				seen[(i+round)%len(all)] = append(seen[(i+round)%len(all)], n)
			}
		}
		fmt.Fprint(os.Stderr, "\r\033[K")
		// Of one round, as the machine is not as fast in the next one.
		ours, many := make([]float64, rounds), make([]float64, rounds)
		for i := range rounds {
			fastest := max(seen[1][i], seen[2][i])
			ours[i], many[i] = seen[0][i]/fastest, seen[3][i]/fastest
		}
		for i, d := range all {
			t.add(fmt.Sprintf("%s, %d goroutines, decisions/s", d.name, goroutines), median(seen[i]))
		}
		t.atLeast(fmt.Sprintf("weir / the faster peer, %d goroutines", goroutines), median(ours), 1)
		t.atLeast(fmt.Sprintf("AllowMany / the faster peer, %d goroutines", goroutines), median(many), 1.5)
	}
	return nil
}

func perSecondOf(ctx context.Context, d decider, goroutines int, span time.Duration) (float64, error) {
	var decided atomic.Int64
	var next atomic.Int64
	var first atomic.Pointer[error]
	started := time.Now()
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for time.Since(started) < span && first.Load() == nil {
				n, err := d.decide(ctx, int(next.Add(7)))
				if err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
				decided.Add(int64(n))
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return 0, *err
	}
	return float64(decided.Load()) / time.Since(started).Seconds(), nil
}
