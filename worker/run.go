package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/hibiken/asynq"
)

// start lets a job leave. It returns at once.
func (s *Server) start(h *held) { go s.run(h) }

// run makes one attempt at a job and ends it.
func (s *Server) run(h *held) {
	started := time.Now()
	s.metrics.departed(h.departed.Sub(h.slot))
	err := errExited
	v := s.classify(h.job, h.attempt, err, nil)
	defer func() {
		s.report(h, v, err, started)
		s.bury(h, v)
		s.settle(h, v)
	}()
	v, err = s.attempt(h)
}

// deadTime bounds what is done about a job that is given up.
const deadTime = 10 * time.Second

// bury tells of a job that is given up.
func (s *Server) bury(h *held, v verdict) {
	if v.outcome != Dead || s.config.OnDead == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.base), deadTime)
	defer stop()
	s.config.OnDead(ctx, h.job, h.attempt, v.reason)
}

// errExited is the error of a handler that ended its goroutine, as runtime.Goexit
// does, and FailNow in a test.
var errExited = errors.New("the handler ended its goroutine")

func (s *Server) attempt(h *held) (verdict, error) {
	most := s.config.Retry.attempts(h.job)
	switch {
	case h.isLost():
		return verdict{outcome: Gone}, nil
	case h.damaged != nil:
		return verdict{outcome: Dead, reason: h.damaged.Error()}, h.damaged
	case h.attempt > most:
		// Whoever made the last attempt was lost with it.
		return verdict{outcome: Dead, reason: fmt.Sprintf("given up after %d attempts: the worker was lost during the last", most)}, nil
	}
	timeout := s.config.Timeout
	if h.job.Timeout > 0 {
		timeout = h.job.Timeout
	}
	early, cancel := context.WithCancelCause(s.base)
	defer cancel(nil)
	h.setCancel(cancel)
	ctx, stop := context.WithTimeout(h.withFeedback(h.withCost(withInfo(early, h, most))), timeout)
	defer stop()
	if !h.deadline.IsZero() {
		var over context.CancelFunc
		ctx, over = context.WithDeadline(ctx, h.deadline)
		defer over()
	}
	err := s.perform(ctx, asynq.NewTaskWithHeaders(h.job.Type, h.job.Payload, h.job.Headers))
	return s.classify(h.job, h.attempt, err, context.Cause(early)), err
}

// errPanic is the error of a handler that panicked. Its text holds no value of the
// program, which may be secret, unless it comes from the runtime.
var errPanic = errors.New("the handler panicked")

func (s *Server) perform(ctx context.Context, task *asynq.Task) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = fmt.Errorf("%w with a value of type %T", errPanic, p)
		var fault runtime.Error
		if e, ok := p.(error); ok && errors.As(e, &fault) {
			err = fmt.Errorf("%w: %w", errPanic, fault)
		}
		s.config.Logger.Error("handler panicked", "type", task.Type(), "error", err, "stack", string(debug.Stack()))
	}()
	return s.handler.ProcessTask(ctx, task)
}

// report writes the one record of an attempt.
func (s *Server) report(h *held, v verdict, err error, started time.Time) {
	took := time.Since(started)
	s.metrics.attempted(v.outcome, took)
	level := levels[v.outcome]
	ctx := context.Background()
	if !s.config.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []any{
		"outcome", v.outcome, "key", h.hold.Key, "id", h.hold.ID, "type", h.job.Type,
		"attempt", h.attempt, "duration", took, "late", h.departed.Sub(h.slot),
	}
	if v.outcome == Retry {
		attrs = append(attrs, "retry_in", v.delay)
	}
	if err != nil {
		attrs = append(attrs, "error", err.Error())
	}
	s.config.Logger.Log(ctx, level, "attempt", attrs...)
}
