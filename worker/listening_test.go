package worker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

// callee is the other side of calls: it keeps when which key was called, and what it answers.
type callee struct {
	mu     sync.Mutex
	calls  map[string][]time.Time
	answer func(key string, n int, info worker.Info) (worker.Feedback, error) // n counts the calls of the key from 1
}

func (c *callee) ProcessTask(ctx context.Context, _ *asynq.Task) error {
	info, _ := worker.JobFrom(ctx)
	c.mu.Lock()
	c.calls[info.Key] = append(c.calls[info.Key], time.Now())
	n := len(c.calls[info.Key])
	c.mu.Unlock()
	f, err := c.answer(info.Key, n, info)
	if told := worker.Tell(ctx, f); told != nil {
		return told
	}
	return err
}

func (c *callee) of(key string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Time(nil), c.calls[key]...)
}

func newCallee(answer func(key string, n int, info worker.Info) (worker.Feedback, error)) *callee {
	return &callee{calls: map[string][]time.Time{}, answer: answer}
}

func refusal(rest time.Duration) (worker.Feedback, error) {
	return worker.Feedback{Fared: throttle.OverLimit, Rest: rest}, fmt.Errorf("429: %w", worker.ErrRefused)
}

// One refused call has the whole key rest, in all workers: what has left is all that still comes. Nothing of it
// is an attempt, other keys go on, and afterwards the bound holds.
func TestAKeyRestsWhenItIsToldTo(t *testing.T) {
	s := newSystem(t)
	s.limit("10/s", 10, "told", "other")
	const rest = 3 * time.Second
	refused := make(chan time.Time, 1)
	var attempts sync.Map
	other := newCallee(func(key string, n int, info worker.Info) (worker.Feedback, error) {
		if info.Attempt != 1 {
			attempts.Store(info.ID, info.Attempt)
		}
		if key == "told" && n == 15 {
			refused <- time.Now()
			return refusal(rest)
		}
		return worker.Feedback{Fared: throttle.Succeeded}, nil
	})
	s.schedule()
	for range 3 {
		s.work(worker.Config{}, other.ProcessTask)
	}
	s.enqueue(jobs("told", 40)...)
	s.enqueue(jobs("other", 60)...)
	at := <-refused
	require.Eventually(t, func() bool { return len(other.of("told")) == 41 }, patience, 10*time.Millisecond)
	during, after := 0, 0
	for _, call := range other.of("told") {
		switch since := call.Sub(at); {
		case since > 50*time.Millisecond && since < rest-50*time.Millisecond:
			during++
		case since >= rest-50*time.Millisecond && since < rest+500*time.Millisecond:
			after++
		}
	}
	require.Zero(t, during, "what was on its way to a worker stayed there")
	require.LessOrEqual(t, after, 10+10)
	attempts.Range(func(id, attempt any) bool {
		require.Fail(t, "a refused call was an attempt", "job %v: %v", id, attempt)
		return true
	})
	calm := 0
	for _, call := range other.of("other") {
		if since := call.Sub(at); since > 0 && since < rest {
			calm++
		}
	}
	require.GreaterOrEqual(t, calm, 20, "another key goes on")
	info, err := s.queue.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, info.Dead)
}

// A call that is refused again and again is not given up, and its attempts are those that were none of it.
func TestRefusedCallsAreNoAttempts(t *testing.T) {
	s := newSystem(t)
	s.limit("50/s", 1, "k")
	var mu sync.Mutex
	var seen []int
	c := newCallee(func(_ string, n int, info worker.Info) (worker.Feedback, error) {
		mu.Lock()
		seen = append(seen, info.Attempt)
		mu.Unlock()
		switch {
		case n <= 10 || n > 11 && n <= 21:
			return refusal(10 * time.Millisecond)
		case n == 11:
			return worker.Feedback{Fared: throttle.Failed}, fmt.Errorf("500")
		}
		return worker.Feedback{Fared: throttle.Succeeded}, nil
	})
	s.schedule()
	s.work(worker.Config{Retry: worker.RetryPolicy{Base: time.Millisecond, MaxAttempts: 3}}, c.ProcessTask)
	s.enqueue(jobs("k", 1)...)
	require.Eventually(t, func() bool { return len(c.of("k")) == 22 }, patience, 10*time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for i, attempt := range seen {
		want := 1
		if i > 10 {
			want = 2
		}
		require.Equal(t, want, attempt, "call %d", i+1)
	}
}

// Calls that keep failing open the circuit: the jobs wait, one call at a time tries, and the first that succeeds
// closes it.
func TestACircuitOpensAndCloses(t *testing.T) {
	s := newSystem(t)
	const rest = 300 * time.Millisecond
	require.NoError(t, s.queue.SetPolicy(t.Context(), throttle.Policy{
		Key: "k", Limit: throttle.Limit{Rate: 200, Period: time.Second, Burst: 1},
		Circuit: &throttle.Circuit{Failures: 20, Rest: rest},
	}))
	c := newCallee(func(_ string, n int, _ worker.Info) (worker.Feedback, error) {
		if n <= 19 || n > 20 && n <= 42 {
			return worker.Feedback{Fared: throttle.Failed}, fmt.Errorf("500")
		}
		return worker.Feedback{Fared: throttle.Succeeded}, nil
	})
	s.schedule()
	// One call at a time, so that their order is that of the answers.
	s.work(worker.Config{Concurrency: 1, Retry: worker.RetryPolicy{Base: time.Millisecond, Cap: time.Millisecond, MaxAttempts: 100}}, c.ProcessTask)
	s.enqueue(jobs("k", 60)...)
	require.Eventually(t, func() bool { return len(c.of("k")) >= 60 }, patience, 10*time.Millisecond)
	calls := c.of("k")
	gap := func(n int) time.Duration { return calls[n].Sub(calls[n-1]) } // before call n+1
	for n := 1; n < 40; n++ {
		require.Less(t, gap(n), rest, "call %d: a success after 19 failures counts anew", n+1)
	}
	require.GreaterOrEqual(t, gap(40), rest-20*time.Millisecond, "20 failures in a row")
	require.GreaterOrEqual(t, gap(41), 2*rest-20*time.Millisecond, "the trial failed")
	require.GreaterOrEqual(t, gap(42), 4*rest-20*time.Millisecond, "the second one too")
	require.Less(t, gap(44), rest, "the third one did not")
}

// A key whose calls fail for too long is paused, with all its jobs, until somebody resumes it.
func TestAKeyIsDisabled(t *testing.T) {
	s := newSystem(t)
	require.NoError(t, s.queue.SetPolicy(t.Context(), throttle.Policy{
		Key: "k", Limit: throttle.Limit{Rate: 100, Period: time.Second, Burst: 1},
		Circuit: &throttle.Circuit{Failures: 3, Rest: 20 * time.Millisecond, Disable: 500 * time.Millisecond},
	}))
	var mended sync.Map
	c := newCallee(func(string, int, worker.Info) (worker.Feedback, error) {
		if _, ok := mended.Load("k"); ok {
			return worker.Feedback{Fared: throttle.Succeeded}, nil
		}
		return worker.Feedback{Fared: throttle.Failed}, fmt.Errorf("500")
	})
	s.schedule()
	s.work(worker.Config{Retry: worker.RetryPolicy{Base: time.Millisecond, Cap: time.Millisecond, MaxAttempts: 1000}}, c.ProcessTask)
	s.enqueue(jobs("k", 20)...)
	explained := func() throttle.Explanation {
		e, err := s.queue.Explain(t.Context(), "k")
		require.NoError(t, err)
		return e
	}
	require.Eventually(t, func() bool { return explained().Cause == throttle.ByCircuit }, patience, time.Millisecond)
	require.Eventually(t, func() bool { e := explained(); return e.Cause == throttle.ByDisabled && e.InFlight == 0 }, patience, 10*time.Millisecond)
	e := explained()
	require.True(t, e.Paused)
	require.EqualValues(t, 20, e.Waiting+e.Delayed, "the jobs are kept")
	before := len(c.of("k"))
	require.Less(t, before, 20, "one at a time was tried")
	mended.Store("k", true)
	require.NoError(t, s.queue.Resume(t.Context(), "k"))
	require.Eventually(t, func() bool {
		e := explained()
		return e.Waiting+e.Delayed+e.InFlight == 0
	}, patience, 10*time.Millisecond)
	require.Len(t, c.of("k"), before+20)
}

// Where the policy does not listen a refused call is one that failed: it is an attempt, the last one with its reason, and
// counts for the circuit.
func TestRefusedCallsOfAKeyThatDoesNotListen(t *testing.T) {
	s := newSystem(t)
	require.NoError(t, s.queue.SetPolicy(t.Context(), throttle.Policy{
		Key: "k", Limit: throttle.Limit{Rate: 100, Period: time.Second, Burst: 1}, Listen: throttle.Ignore,
		Circuit: &throttle.Circuit{Failures: 4, Rest: 20 * time.Second},
	}))
	c := newCallee(func(string, int, worker.Info) (worker.Feedback, error) { return refusal(time.Hour) })
	s.schedule()
	s.work(worker.Config{Concurrency: 1, Retry: worker.RetryPolicy{Base: time.Millisecond, Cap: time.Millisecond, MaxAttempts: 3}}, c.ProcessTask)
	s.enqueue(jobs("k", 1)...)
	require.Eventually(t, func() bool {
		page, err := s.queue.DeadLetters(t.Context(), throttle.Page{})
		require.NoError(t, err)
		return len(page.Jobs) == 1 && page.Jobs[0].Attempts == 3 && page.Jobs[0].Reason == "429: "+worker.ErrRefused.Error()
	}, patience, 10*time.Millisecond)
	require.Len(t, c.of("k"), 3)
	s.enqueue(throttle.Job{Key: "k", ID: "next", Type: "test"})
	require.Eventually(t, func() bool {
		e, err := s.queue.Explain(t.Context(), "k")
		require.NoError(t, err)
		return e.Cause == throttle.ByCircuit || len(c.of("k")) == 4 && e.JobState == throttle.Delayed
	}, patience, time.Millisecond)
}

// What left before the circuit opened says nothing of it any more: a straggler that succeeds does not close it.
func TestStragglersLeaveTheCircuitOpen(t *testing.T) {
	s := newSystem(t)
	require.NoError(t, s.queue.SetPolicy(t.Context(), throttle.Policy{
		Key: "k", Limit: throttle.Limit{Rate: 1000, Period: time.Second, Burst: 10}, Circuit: &throttle.Circuit{Failures: 3, Rest: 20 * time.Second},
	}))
	opened := make(chan struct{})
	c := newCallee(func(_ string, n int, _ worker.Info) (worker.Feedback, error) {
		if n <= 3 {
			return worker.Feedback{Fared: throttle.Failed}, fmt.Errorf("500")
		}
		<-opened
		return worker.Feedback{Fared: throttle.Succeeded}, nil
	})
	s.schedule()
	s.work(worker.Config{Retry: worker.RetryPolicy{Base: time.Second}}, c.ProcessTask)
	s.enqueue(jobs("k", 30)...)
	explained := func() throttle.Explanation {
		e, err := s.queue.Explain(t.Context(), "k")
		require.NoError(t, err)
		return e
	}
	require.Eventually(t, func() bool { return explained().CoolUntil.After(time.Now()) }, patience, time.Millisecond)
	close(opened)
	require.Eventually(t, func() bool { return explained().InFlight == 0 }, patience, 10*time.Millisecond)
	require.True(t, explained().CoolUntil.After(time.Now()), "the circuit is open still")
}
