package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

// A worker whose calls hang leaves parcels to one that has room.
func TestAFullWorkerLeavesParcelsToOthers(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 5, "slow")
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("quick %d", i))
	}
	s.limit("10/s", 1, keys...)
	c := s.calls()
	handler := hanging(c, "slow")
	s.work(worker.Config{Concurrency: 2, ShutdownTimeout: time.Millisecond}, handler)
	s.schedule()
	s.enqueue(jobs("slow", 2)...)
	c.wait("slow", 2)
	s.work(worker.Config{}, c.handler(nil))
	for _, key := range keys {
		s.enqueue(jobs(key, 20)...)
	}
	began := time.Now()
	for _, key := range keys {
		c.wait(key, 20)
	}
	require.Less(t, time.Since(began), 15*time.Second, "2 s at the full rate; a lease, where the full worker keeps them")
}

// A worker that is filled by a part of a parcel gives the rest of it back.
func TestAWorkerThatFillsUpGivesBackWhatItCannotTake(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("10/s", 1, "slow", "quick")
	s.enqueue(throttle.Job{Key: "slow", ID: "1", Type: "test"})
	s.enqueue(jobs("quick", 30)...)
	c := s.calls()
	s.schedule()
	s.eventually(func() bool { // both wait in asynq, perhaps in one parcel
		k, err := s.queue.Key(context.Background(), "quick")
		return err == nil && k.InFlight > 0 && s.state("slow", "1").State == throttle.Released
	}, "not released")
	s.work(worker.Config{Concurrency: 1, ShutdownTimeout: time.Millisecond}, hanging(c, "slow"))
	c.wait("slow", 1)
	s.work(worker.Config{}, c.handler(nil))
	began := time.Now()
	c.wait("quick", 30)
	require.Less(t, time.Since(began), 15*time.Second, "3 s at the full rate")
}

// hanging is a handler whose calls of one key end with their contexts only.
func hanging(c *calls, key string) asynq.HandlerFunc {
	return c.handler(func(ctx context.Context, job call) error {
		if job.Key != key {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
}
