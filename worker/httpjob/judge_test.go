package httpjob

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

func TestJudge(t *testing.T) {
	after := func(s string) http.Header { return http.Header{"Retry-After": {s}} }
	spent := http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"30"}}
	for _, c := range []struct {
		name    string
		success []string
		status  int
		header  http.Header
		want    worker.Feedback
		mark    error // that the error wraps; nil with a failure means that it is tried again
		done    bool
	}{
		{"ok", nil, 204, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, true},
		{"ok, and nothing left", nil, 200, spent, worker.Feedback{Fared: throttle.Succeeded, Rest: 30 * time.Second}, nil, true},
		{"ok by wish", []string{"200", "400-499"}, 404, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, true},
		{"gone by wish", []string{"4xx"}, 410, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, true},
		{"not ok by wish", []string{"200"}, 204, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, false},
		{"refused", nil, 429, nil, worker.Feedback{Fared: throttle.OverLimit}, worker.ErrRefused, false},
		{"refused for a time", nil, 429, after("7"), worker.Feedback{Fared: throttle.OverLimit, Rest: 7 * time.Second}, worker.ErrRefused, false},
		{"refused for ever", nil, 429, after("99999999999"), worker.Feedback{Fared: throttle.OverLimit, Rest: throttle.MaxRest}, worker.ErrRefused, false},
		{"busy for a time", nil, 503, after("7"), worker.Feedback{Fared: throttle.OverLimit, Rest: 7 * time.Second}, worker.ErrRefused, false},
		{"busy", nil, 503, nil, worker.Feedback{Fared: throttle.Failed}, nil, false},
		{"forbidden, as nothing is left", nil, 403, spent, worker.Feedback{Fared: throttle.OverLimit, Rest: 30 * time.Second}, worker.ErrRefused, false},
		{"forbidden", nil, 403, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, false},
		{"broken", nil, 500, nil, worker.Feedback{Fared: throttle.Failed}, nil, false},
		{"broken for a time", nil, 502, after("7"), worker.Feedback{Fared: throttle.Failed, Rest: 7 * time.Second}, nil, false},
		{"too slow", nil, 408, nil, worker.Feedback{Fared: throttle.Failed}, nil, false},
		{"too early", nil, 425, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, false},
		{"not found, and nothing left", nil, 404, spent, worker.Feedback{Fared: throttle.Succeeded, Rest: 30 * time.Second}, nil, false},
		{"gone", nil, 410, nil, worker.Feedback{Fared: throttle.Succeeded}, asynq.SkipRetry, false},
		{"moved", nil, 301, nil, worker.Feedback{Fared: throttle.Succeeded}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := c.header
			if h == nil {
				h = http.Header{}
			}
			v := Request{Success: c.success}.judge(received{from: &url.URL{Host: "h"}, status: c.status, header: h}, time.Now())
			require.Equal(t, c.want, v.feedback)
			if c.done {
				require.NoError(t, v.err)
				return
			}
			var call *CallError
			require.ErrorAs(t, v.err, &call)
			require.Equal(t, CallError{Method: "POST", Host: "h", Status: c.status}, *call)
			require.Equal(t, call.Error(), v.err.Error())
			for _, mark := range []error{worker.ErrRefused, asynq.SkipRetry} {
				require.Equal(t, errors.Is(c.mark, mark), errors.Is(v.err, mark), mark)
			}
		})
	}
}

func TestJudgeFailure(t *testing.T) {
	failed := worker.Feedback{Fared: throttle.Failed}
	late, cancelLate := context.WithDeadline(t.Context(), time.Now())
	defer cancelLate()
	off, callOff := context.WithCancelCause(t.Context())
	callOff(errors.New("the worker is shutting down"))
	for _, c := range []struct {
		name  string
		ctx   context.Context
		err   error
		want  worker.Feedback
		final bool
	}{
		{"name not found", t.Context(), &net.DNSError{Err: "no such host", Name: "h", IsNotFound: true}, failed, false},
		{"refused", t.Context(), &net.OpError{Op: "dial", Err: errors.New("connection refused")}, failed, false},
		{"broken", t.Context(), io.ErrUnexpectedEOF, failed, false},
		{"timeout", late, errors.New("whatever"), failed, false},
		{"called off", off, errors.New("whatever"), worker.Feedback{}, false},
		{"blocked", t.Context(), &net.OpError{Op: "dial", Err: &BlockedError{}}, worker.Feedback{}, true},
		{"blocked, and late", late, &BlockedError{}, worker.Feedback{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Request{}.judgeFailure(c.ctx, "h", c.err)
			require.Equal(t, c.want, v.feedback)
			require.Error(t, v.err)
			require.Equal(t, c.final, errors.Is(v.err, asynq.SkipRetry))
		})
	}
}
