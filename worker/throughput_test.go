package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// BenchmarkThroughput compares jobs without an effective limit with the same on
// plain asynq, enqueueing included: a thousand each time, of 200 bytes.
func BenchmarkThroughput(b *testing.B) {
	const jobs = 1000
	payload := make([]byte, 200)
	for _, system := range []struct {
		name  string
		start func(b *testing.B, handler asynq.HandlerFunc) (enqueue func(ctx context.Context) error)
	}{
		{"weir", func(b *testing.B, handler asynq.HandlerFunc) func(context.Context) error {
			b.Helper()
			s := newSystem(b)
			var keys []string
			for i := range 10 {
				keys = append(keys, fmt.Sprintf("key %d", i))
			}
			s.limit("1000000/s", 1_000_000, keys...)
			s.work(worker.Config{}, handler)
			s.schedule()
			return func(ctx context.Context) error {
				list := make([]throttle.Job, jobs)
				for i := range list {
					list[i] = throttle.Job{Key: keys[i%len(keys)], Type: "bench", Payload: payload}
				}
				_, err := s.queue.EnqueueMany(ctx, list)
				return err
			}
		}},
		{"asynq", func(b *testing.B, handler asynq.HandlerFunc) func(context.Context) error {
			b.Helper()
			client := startAsynq(b, handler)
			tasks := asynq.NewClientFromRedisClient(client)
			return func(ctx context.Context) error {
				var producers errgroup.Group // as it takes one at a time
				producers.SetLimit(8)
				for range jobs {
					producers.Go(func() error {
						_, err := tasks.EnqueueContext(ctx, asynq.NewTask("bench", payload))
						return err
					})
				}
				return producers.Wait()
			}
		}},
	} {
		b.Run(system.name, func(b *testing.B) {
			var left sync.WaitGroup
			enqueue := system.start(b, func(context.Context, *asynq.Task) error {
				left.Done()
				return nil
			})
			for b.Loop() {
				left.Add(jobs)
				require.NoError(b, enqueue(b.Context()))
				left.Wait()
			}
			b.ReportMetric(float64(jobs*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// startAsynq runs asynq on its own, polling as fast as it can.
func startAsynq(b *testing.B, handler asynq.HandlerFunc) redis.UniversalClient {
	b.Helper()
	client, err := throttle.Open(throttletest.StartRedis(b).URL())
	require.NoError(b, err)
	b.Cleanup(func() { _ = client.Close() })
	server := asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency: 500, TaskCheckInterval: time.Millisecond,
		Logger: quiet{}, LogLevel: asynq.FatalLevel,
	})
	require.NoError(b, server.Start(handler))
	b.Cleanup(server.Shutdown)
	return client
}

// quiet is an asynq logger that says nothing.
type quiet struct{}

func (quiet) Debug(...any) {}
func (quiet) Info(...any)  {}
func (quiet) Warn(...any)  {}
func (quiet) Error(...any) {}
func (quiet) Fatal(...any) {}
