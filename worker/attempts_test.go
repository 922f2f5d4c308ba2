package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker"
)

// soon makes retries come back at once, so that only the bucket paces them.
var soon = worker.RetryPolicy{Base: time.Millisecond, Cap: 5 * time.Millisecond, MaxAttempts: 3}

var errRefused = errors.New("connection refused")

func refuse(context.Context, call) error { return errRefused }

func TestRetriesLeaveThroughTheBucket(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("20/s", 1, "k")
	s.enqueue(jobs("k", 10)...)
	c := s.calls()
	for range 2 { // as one alone would keep the pace by itself
		s.work(worker.Config{Retry: soon}, c.handler(refuse))
	}
	s.schedule()
	c.wait("k", 30)
	s.empty("k")

	var attempts []string
	for _, id := range ids(10) {
		attempts = append(attempts, id, id+"#2", id+"#3")
	}
	r := s.report(c, "k", attempts)
	require.NoError(t, r.Check(throttletest.Bounds{MinRatio: 0.6, MaxExcess: 1}))
	require.Equal(t, 30, r.Count)
	letters := s.dead("k")
	require.Len(t, letters, 10)
	for _, l := range letters {
		require.Equal(t, 3, l.Attempts)
		require.Equal(t, "attempt 3 of 3 failed: connection refused", l.Reason)
	}
}

// To wait behind others, for a not-before, or to be given back by workers that stop
// is not to fail.
func TestWaitingSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("50/s", 10, "k")
	list := jobs("k", 40)
	list[39].NotBefore = time.Now().Add(300 * time.Millisecond)
	s.enqueue(list...)
	c := s.calls()
	s.schedule()
	for n := 5; n <= 20; n += 5 {
		server := s.work(worker.Config{Concurrency: 1, Retry: soon}, c.handler(nil))
		c.wait("k", n)
		server.stop()
	}
	s.work(worker.Config{Retry: soon}, c.handler(func(_ context.Context, job call) error {
		if job.ID == "40" {
			return errRefused
		}
		return nil
	}))
	s.eventually(func() bool { return len(s.dead("k")) == 1 }, "the failing job does not die")
	s.empty("k")

	var last []int
	for _, j := range c.of("k") {
		require.Equal(t, 3, j.MaxAttempts)
		if j.ID == "40" {
			last = append(last, j.Attempt)
			require.False(t, j.began.Before(list[39].NotBefore.Add(-50*time.Millisecond)))
		} else {
			require.Equal(t, 1, j.Attempt)
		}
	}
	require.Equal(t, []int{1, 2, 3}, last)
	require.Equal(t, 3, s.dead("k")[0].Attempts)
}

func TestWhatAHandlerReturnsDecides(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 100, "k")
	c := s.calls()
	s.work(worker.Config{Retry: soon}, c.handler(func(_ context.Context, job call) error {
		switch {
		case job.ID == "no-use":
			return fmt.Errorf("no such address: %w", asynq.SkipRetry)
		case job.ID == "revoked":
			return fmt.Errorf("not wanted any more: %w", asynq.RevokeTask)
		case job.ID == "panics" && job.Attempt == 1:
			panic("SECRET")
		case job.ID == "second-time" && job.Attempt == 1, job.ID == "never":
			return errRefused
		}
		return nil
	}))
	s.schedule()
	var list []throttle.Job
	for _, id := range []string{"done", "no-use", "revoked", "panics", "second-time", "never"} {
		list = append(list, throttle.Job{Key: "k", ID: id, Type: "test"})
	}
	s.enqueue(list...)
	s.eventually(func() bool { return len(s.dead("k")) == 2 }, "too few dead letters")
	s.empty("k")

	attempts := map[string]int{}
	for _, j := range c.of("k") {
		attempts[j.ID]++
		require.Equal(t, attempts[j.ID], j.Attempt)
	}
	require.Equal(t, map[string]int{"done": 1, "no-use": 1, "revoked": 1, "panics": 2, "second-time": 2, "never": 3}, attempts)
	for _, l := range s.dead("k") {
		switch l.ID {
		case "no-use":
			require.Equal(t, 1, l.Attempts)
			require.Equal(t, "no such address: skip retry for the task", l.Reason)
		default:
			require.Equal(t, "never", l.ID)
			require.Equal(t, 3, l.Attempts)
			require.Equal(t, "attempt 3 of 3 failed: connection refused", l.Reason)
		}
	}
}

// The next attempt begins only when the last has ended, however long its handler
// goes on after its timeout; in the meantime the job is nobody else's.
func TestNextAttemptWaitsForTheLast(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	s := newSystem(t)
	s.limit("100/s", 100, "k")
	c := s.calls()
	var open, most atomic.Int64
	handler := c.handler(func(ctx context.Context, job call) error {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		<-ctx.Done() // the timeout
		if job.Attempt == 1 {
			<-time.After(3 * lease) // what an unruly handler does
		}
		return ctx.Err()
	})
	for range 2 {
		s.work(worker.Config{Timeout: 50 * time.Millisecond, Lease: lease, Retry: soon}, handler)
	}
	s.schedule()
	s.enqueue(jobs("k", 1)...)
	list := c.wait("k", 3)
	s.empty("k")
	require.EqualValues(t, 1, most.Load())
	require.Len(t, list, 3)
	require.Greater(t, list[1].began.Sub(list[0].began), 3*lease)
	require.Less(t, list[2].began.Sub(list[1].began), 2*time.Second) // 50 ms and a little
	require.Equal(t, "attempt 3 of 3 failed: context deadline exceeded", s.dead("k")[0].Reason)
}

func TestJobsOwnTimeoutAndAttemptsWin(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("100/s", 100, "k")
	c := s.calls()
	s.work(worker.Config{Timeout: time.Hour, Retry: soon}, c.handler(func(ctx context.Context, _ call) error {
		<-ctx.Done()
		return ctx.Err()
	}))
	s.schedule()
	job := jobs("k", 1)[0]
	job.Timeout, job.MaxAttempts = 20*time.Millisecond, 5
	s.enqueue(job)
	list := c.wait("k", 5)
	s.empty("k")
	require.Len(t, list, 5)
	require.Equal(t, 5, list[0].MaxAttempts)
	require.Equal(t, 5, s.dead("k")[0].Attempts)
}

func TestPayloadAndHeadersArriveByteForByte(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.limit("1000/s", 100, "k")
	var every []byte
	for b := range 256 {
		every = append(every, byte(b))
	}
	payloads := [][]byte{
		{0x00, 0xff, 0x0a, 0x0d, 0x7b}, {}, {0x80}, []byte("\n"), []byte("{}\n{}"), every, make([]byte, throttle.DefaultMaxJobSize),
	}
	list := jobs("k", len(payloads))
	for i := range list {
		list[i].Payload = payloads[i]
		list[i].Headers = map[string]string{"Trace": fmt.Sprint(i), "odd \n": "é\x00\"<"}
	}
	c := s.calls()
	s.work(worker.Config{}, c.handler(nil))
	s.schedule()
	s.enqueue(list...)
	c.wait("k", len(list))
	s.empty("k")
	seen := c.of("k")
	require.Len(t, seen, len(list))
	for _, j := range seen {
		want := list[number(t, j.ID)-1]
		require.True(t, slices.Equal(want.Payload, j.payload), "job %s of %d bytes", j.ID, len(want.Payload))
		require.Equal(t, want.Headers, j.headers)
	}
}
