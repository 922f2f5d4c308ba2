package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// attempting returns a server that can only make attempts, and its log.
func attempting(t *testing.T, handler asynq.HandlerFunc) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	config := Config{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	m, err := newMetrics(nil)
	require.NoError(t, err)
	return &Server{config: config.withDefaults(), metrics: m, handler: handler, base: t.Context()}, &log
}

func departed() *held {
	return &held{
		hold: throttle.Hold{Key: "billing", ID: "evt_1", Release: 1, Run: 1},
		job: throttle.Job{
			Key: "billing", ID: "evt_1", Type: "mail", Payload: []byte("PAYLOAD"), Cost: 3,
			Headers: map[string]string{"authorization": "SECRET"},
		},
		attempt: 2,
	}
}

func TestHandlerSeesTheUsersTask(t *testing.T) {
	h := departed()
	h.job.MaxAttempts, h.job.Timeout = 7, time.Hour
	h.departed = time.Now()
	called := false
	s, _ := attempting(t, func(ctx context.Context, task *asynq.Task) error {
		called = true
		require.Equal(t, "mail", task.Type())
		require.Equal(t, []byte("PAYLOAD"), task.Payload())
		require.Equal(t, map[string]string{"authorization": "SECRET"}, task.Headers())
		info, ok := JobFrom(ctx)
		require.True(t, ok)
		require.Equal(t, Info{Key: "billing", ID: "evt_1", Attempt: 2, MaxAttempts: 7, Cost: 3, Departed: h.departed}, info)
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.WithinDuration(t, time.Now().Add(time.Hour), deadline, time.Minute)
		return nil
	})
	v, err := s.attempt(h)
	require.NoError(t, err)
	require.Equal(t, Done, v.outcome)
	require.True(t, called)

	_, ok := JobFrom(context.Background())
	require.False(t, ok, "outside a handler there is no job")
}

func TestTimeoutOfAnAttempt(t *testing.T) {
	for name, c := range map[string]struct{ job, want time.Duration }{
		"the job's own": {2 * time.Second, 2 * time.Second}, "the default": {0, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := attempting(t, func(ctx context.Context, _ *asynq.Task) error {
					<-ctx.Done()
					return ctx.Err()
				})
				h := departed()
				h.job.Timeout = c.job
				begin := time.Now()
				v, err := s.attempt(h)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, Retry, v.outcome)
				require.Equal(t, c.want, time.Since(begin))
			})
		})
	}
}

// The job is not let go of while its handler runs, however long that is: otherwise
// it would be run a second time meanwhile.
func TestAttemptLastsAsLongAsItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := attempting(t, func(context.Context, *asynq.Task) error {
			time.Sleep(time.Hour)
			return errors.New("late")
		})
		h := departed()
		h.job.Timeout = time.Second
		begin := time.Now()
		v, _ := s.attempt(h)
		require.Equal(t, Retry, v.outcome)
		require.Equal(t, time.Hour, time.Since(begin))
	})
}

type secretive string

func (secretive) Error() string { return "TOKEN" }

func TestPanicIsAFailedAttempt(t *testing.T) {
	var none []int
	var noMap map[string]int
	first := 0
	for _, c := range []struct {
		name  string
		panic func()
		want  string
	}{
		{"text", func() { panic("TOKEN") }, "the handler panicked with a value of type string"},
		{"error", func() { panic(errors.New("TOKEN")) }, "the handler panicked with a value of type *errors.errorString"},
		{"own error", func() { panic(secretive("")) }, "the handler panicked with a value of type worker.secretive"},
		{"struct", func() { panic(struct{ Token string }{"TOKEN"}) }, "the handler panicked with a value of type struct { Token string }"},
		{"nil", func() { panic(nil) }, "the handler panicked: panic called with nil argument"},
		{"index", func() { none[first]++ }, "the handler panicked: runtime error: index out of range [0] with length 0"},
		{"nil map", func() { noMap["a"]++ }, "the handler panicked: assignment to entry in nil map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, log := attempting(t, func(context.Context, *asynq.Task) error {
				c.panic()
				return nil
			})
			v, err := s.attempt(departed())
			require.Equal(t, Retry, v.outcome)
			require.ErrorIs(t, err, errPanic)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "TOKEN")
			require.Contains(t, log.String(), "run_test.go", "the log tells where")
			require.NotContains(t, log.String(), "TOKEN")
		})
	}
}

// Or the job would stay at hand, its lease renewed, for ever.
func TestHandlerThatEndsItsGoroutineIsAFailedAttempt(t *testing.T) {
	s, log := attempting(t, func(context.Context, *asynq.Task) error {
		runtime.Goexit()
		return nil
	})
	h := departed()
	h.parcel = newLoad(1)
	s.places = newPlaces(1, nil)
	told := make(chan ending, 1)
	s.endings = []*batcher[ending]{newBatcher(1, func(_ context.Context, items []ending) error {
		told <- items[0]
		return nil
	})}
	s.permits = onePermitShard(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		s.endings[0].run(ctx)
		close(ended)
	}()
	go s.run(h)
	require.Equal(t, Retry, (<-told).verdict.outcome)
	require.Contains(t, log.String(), "the handler ended its goroutine")
	cancel()
	<-ended
}

// onePermitShard returns permits that are good for naming shards.
func onePermitShard(t *testing.T) *throttle.Permits {
	t.Helper()
	r := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{Shards: 1})
	require.NoError(t, err)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	return p
}

func TestPanicOnTheLastAttemptIsAReason(t *testing.T) {
	s, _ := attempting(t, func(context.Context, *asynq.Task) error { panic("TOKEN") })
	h := departed()
	h.job.MaxAttempts = 2
	v, _ := s.attempt(h)
	require.Equal(t, verdict{outcome: Dead, reason: "attempt 2 of 2 failed: the handler panicked with a value of type string"}, v)
}

func TestJobThatCannotRunIsNotRun(t *testing.T) {
	s, _ := attempting(t, func(context.Context, *asynq.Task) error {
		t.Error("the handler was called")
		return nil
	})
	lost := departed()
	lost.lose(0)
	v, _ := s.attempt(lost)
	require.Equal(t, verdict{outcome: Gone}, v)

	damaged := departed()
	damaged.damaged = errors.New("the stored job is damaged")
	v, _ = s.attempt(damaged)
	require.Equal(t, verdict{outcome: Dead, reason: "the stored job is damaged"}, v)

	worn := departed()
	worn.attempt, worn.job.MaxAttempts = 4, 3
	v, _ = s.attempt(worn)
	require.Equal(t, Dead, v.outcome)
	require.Contains(t, v.reason, "given up after 3 attempts")
}

func TestAttemptIsOneRecordWithoutContents(t *testing.T) {
	fault := errors.New("connection refused")
	for _, c := range []struct {
		v     verdict
		err   error
		level string
		with  []string
	}{
		{verdict{outcome: Done}, nil, "DEBUG", nil},
		{verdict{outcome: Retry, delay: 3 * time.Second}, fault, "INFO", []string{"retry_in=3s", `error="connection refused"`}},
		{verdict{outcome: Dead, reason: "x"}, fault, "WARN", []string{`error="connection refused"`}},
		{verdict{outcome: Dropped}, fault, "INFO", nil},
		{verdict{outcome: Parked}, context.Canceled, "DEBUG", nil},
		{verdict{outcome: Gone}, nil, "DEBUG", nil},
	} {
		t.Run(string(c.v.outcome), func(t *testing.T) {
			s, log := attempting(t, nil)
			s.report(departed(), c.v, c.err, time.Now())
			text := log.String()
			require.Equal(t, 1, strings.Count(text, "\n"), text)
			for _, want := range append(c.with, "level="+c.level, "msg=attempt", "outcome="+string(c.v.outcome),
				"key=billing", "id=evt_1", "type=mail", "attempt=2", "duration=", "late=") {
				require.Contains(t, text, want)
			}
			require.NotContains(t, text, "PAYLOAD")
			require.NotContains(t, text, "SECRET")
		})
	}
}
