package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestClassify(t *testing.T) {
	fault := errors.New("connection refused")
	for _, c := range []struct {
		name       string
		attempt    int
		err, cause error
		want       Outcome
		reason     string
	}{
		{"no error", 1, nil, nil, Done, ""},
		{"no error on the last attempt", 3, nil, nil, Done, ""},
		{"done in spite of a shutdown", 1, nil, errShutdown, Done, ""},
		{"error", 1, fault, nil, Retry, "connection refused"},
		{"error on the last but one", 2, fault, nil, Retry, "connection refused"},
		{"error on the last", 3, fault, nil, Dead, "attempt 3 of 3 failed: connection refused"},
		{"error beyond the last", 4, fault, nil, Dead, "attempt 4 of 3 failed: connection refused"},
		{"timeout", 1, context.DeadlineExceeded, nil, Retry, "context deadline exceeded"},
		{"cancelled by the handler itself", 1, context.Canceled, nil, Retry, "context canceled"},
		{"panic", 1, errPanic, nil, Retry, "the handler panicked"},
		{"no use in trying again", 1, asynq.SkipRetry, nil, Dead, "skip retry for the task"},
		{"no use, wrapped", 1, fmt.Errorf("bad address: %w", asynq.SkipRetry), nil, Dead, "bad address: skip retry for the task"},
		{"revoked", 1, fmt.Errorf("not wanted: %w", asynq.RevokeTask), nil, Dropped, ""},
		{"revoked on the last", 3, asynq.RevokeTask, nil, Dropped, ""},
		{"revoked and no use", 1, errors.Join(asynq.SkipRetry, asynq.RevokeTask), nil, Dropped, ""},
		{"cut short by a shutdown", 1, context.Canceled, errShutdown, Parked, ""},
		{"cut short by a shutdown on the last", 3, fault, errShutdown, Parked, ""},
		{"cut short by a shutdown, and no use", 1, asynq.SkipRetry, errShutdown, Parked, ""},
		{"lost", 1, context.Canceled, errLost, Gone, ""},
		{"lost, but done", 1, nil, errLost, Gone, ""},
		{"lost on the last", 3, fault, errLost, Gone, ""},
		{"ended early by something else", 1, fault, errors.New("other"), Retry, "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Server{config: Config{Retry: RetryPolicy{Base: time.Second, Cap: time.Second, MaxAttempts: 10}}}
			v := s.classify(throttle.Job{MaxAttempts: 3}, c.attempt, c.err, c.cause)
			require.Equal(t, c.want, v.outcome)
			require.Equal(t, c.reason, v.reason)
			if c.want != Retry {
				require.Zero(t, v.delay)
			}
		})
	}
}

func TestEndingsOfOutcomes(t *testing.T) {
	hold := throttle.Hold{Key: "k", ID: "x", Release: 2, Run: 3}
	for outcome, want := range map[Outcome]string{
		Done: throttle.Done, Dropped: throttle.Done, Retry: throttle.Retry, Dead: throttle.Dead, Parked: throttle.Return,
		Refused: throttle.Refused,
	} {
		e := verdict{outcome: outcome, delay: time.Second, reason: "why"}.ending(hold, &trueCost{}, Feedback{})
		require.Equal(t, throttle.Ending{
			Hold: hold, What: want, Delay: time.Second, Reason: "why", Settled: outcome == Dropped,
		}, e, outcome)
	}
}

func TestEndingsCarryWhatTheHandlerSaysOfTheCost(t *testing.T) {
	var h held
	ctx := h.withCost(t.Context())
	require.NoError(t, SetCost(ctx, 5))
	require.NoError(t, SetCost(context.WithValue(ctx, infoKey{}, nil), 7))
	for _, cost := range []int64{-1, throttle.MaxCost + 1} {
		require.ErrorContains(t, SetCost(ctx, cost), "want 0 to 1000000000")
	}
	require.ErrorIs(t, SetCost(t.Context(), 5), ErrNoJob)
	for _, o := range []Outcome{Done, Retry, Dead, Dropped} {
		e := verdict{outcome: o}.ending(throttle.Hold{}, &h.cost, Feedback{})
		require.Equal(t, []any{int64(7), true}, []any{e.Cost, e.Settled}, o)
	}
	require.False(t, verdict{outcome: Parked}.ending(throttle.Hold{}, &h.cost, Feedback{}).Settled, "there was no attempt")
}

func TestEveryOutcomeHasALogLevel(t *testing.T) {
	for _, o := range []Outcome{Done, Retry, Dead, Dropped, Refused, Parked, Gone} {
		require.Contains(t, levels, o)
	}
	require.Len(t, levels, 7)
}
