package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// local compares the token bucket in memory, one key, all processors.
func local(t *table, rounds int) error {
	store := limiter.NewMemory(limiter.MemoryConfig{})
	own, err := limiter.New(store, "local", limiter.TokenBucket(throttle.Limit{Rate: 1_000_000, Period: time.Second, Burst: burst}))
	if err != nil {
		return err
	}
	peer := rate.NewLimiter(1_000_000, burst)
	ctx := context.Background()
	measure := func(decide func()) testing.BenchmarkResult {
		return testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					decide()
				}
			})
		})
	}
	var ours, theirs, allocations []float64
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "\rtoken bucket in memory, round %d of %d ", round+1, rounds)
		r := measure(func() { _, _ = own.Allow(ctx, "user:00000001") })
		ours, allocations = append(ours, float64(r.T.Nanoseconds())/float64(r.N)), append(allocations, float64(r.AllocsPerOp()))
		r = measure(func() { peer.Allow() })
		theirs = append(theirs, float64(r.T.Nanoseconds())/float64(r.N))
	}
	fmt.Fprint(os.Stderr, "\r\033[K")
	t.add("weir in memory, ns", median(ours))
	t.add("golang.org/x/time/rate, ns", median(theirs))
	t.atMost("weir / golang.org/x/time/rate", median(ours)/median(theirs), 2)
	t.atMost("weir in memory, allocations", median(allocations), 0)
	return nil
}
