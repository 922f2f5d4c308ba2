package httpjob

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/upstream"
)

// A verdict is what a call comes to: for its job, and for its key.
type verdict struct {
	err      error
	feedback worker.Feedback
}

// judge classifies an answer.
func (r Request) judge(got received, now time.Time) verdict {
	said := upstream.Read(got.status, got.header, now, throttle.MaxRest)
	v := verdict{feedback: worker.Feedback{Rest: said.RetryAfter}}
	if r.succeeds(got.status) {
		v.feedback.Fared = throttle.Succeeded
		return v
	}
	v.err = &CallError{Method: r.method(), Host: got.from.Host, Status: got.status}
	switch {
	case said.Refused:
		v.feedback.Fared = throttle.OverLimit
		v.err = &marked{v.err, worker.ErrRefused}
	case got.status >= http.StatusInternalServerError, got.status == http.StatusRequestTimeout:
		v.feedback.Fared = throttle.Failed
	default:
		v.feedback.Fared = throttle.Succeeded // for the key: whoever answers so is there
		if got.status == http.StatusGone {
			v.err = &marked{v.err, asynq.SkipRetry}
		}
	}
	return v
}

// judgeFailure classifies the error of a call that got no answer.
func (r Request) judgeFailure(ctx context.Context, host string, err error) verdict {
	call := &CallError{Method: r.method(), Host: host}
	var blocked *BlockedError
	if errors.As(err, &blocked) {
		call.Err = blocked
		return verdict{err: &marked{call, asynq.SkipRetry}}
	}
	if errors.Is(err, errOldAddress) {
		call.Err = errOldAddress
		return verdict{err: &marked{call, asynq.SkipRetry}}
	}
	call.Err = cause(ctx, err)
	v := verdict{err: call, feedback: worker.Feedback{Fared: throttle.Failed}}
	if ctx.Err() != nil && !errors.Is(call.Err, context.DeadlineExceeded) {
		v.feedback = worker.Feedback{} // it was called off on this side
	}
	return v
}

// marked is an error that matches a mark as well, which tells the worker what
// to do. Its text is that of the error.
type marked struct {
	error

	mark error
}

func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }
