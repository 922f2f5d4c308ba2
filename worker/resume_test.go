package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/worker"
)

// Keys that are resumed all at once share the worker's places.
func TestResumingManyKeysKeepsToTheConcurrency(t *testing.T) {
	t.Parallel()
	const keys, each, places = 50, 10, 7
	s := newSystem(t)
	s.limit("1000/s", 100, "*")
	require.NoError(t, s.queue.Pause(t.Context(), "k*"))
	for i := range keys {
		s.enqueue(jobs(fmt.Sprintf("k%d", i), each)...)
	}
	var running, most, done atomic.Int64
	c := s.calls()
	s.work(worker.Config{Concurrency: places}, c.handler(func(context.Context, call) error {
		n := running.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		time.Sleep(2 * time.Millisecond)
		running.Add(-1)
		done.Add(1)
		return nil
	}))
	s.schedule()
	require.NoError(t, s.queue.Resume(t.Context(), "k*"))
	s.eventually(func() bool { return done.Load() == keys*each }, "not all jobs ran")
	require.EqualValues(t, places, most.Load())
}
