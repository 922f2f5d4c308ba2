package httpjob

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
)

// An answer's body is read so that its connection can carry the next call, but
// no further than this: a larger or slower one costs its connection instead.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// Config sets up a [Handler]. The zero Config is ready for use.
type Config struct {
	Transport http.RoundTripper // makes the calls; nil means NewTransport()
	UserAgent string            // for calls that set none; empty means "weir/VERSION"
}

// A Handler makes the calls of jobs of type [Type]. It is an asynq.Handler and
// safe for concurrent use.
//
// An answer of 2xx is success. Any other answer, and every failure to get one,
// is a [*CallError] and is tried again. A redirect is an answer like any other
// and is not followed: its target was not asked for. The error for a task that is
// no call wraps asynq.SkipRetry, as trying again cannot help.
//
// The call ends with the context, which is where a timeout comes from. Nothing
// is added to the request but a User-Agent. One attempt is one request, with an
// exception of net/http: on a kept connection that broke before any answer, a
// call without a body and with a safe method, or one with an Idempotency-Key
// header, is sent again at once.
type Handler struct {
	client    *http.Client
	userAgent string
}

var _ asynq.Handler = (*Handler)(nil)

// NewHandler makes a handler.
func NewHandler(c Config) *Handler {
	if c.Transport == nil {
		c.Transport = NewTransport()
	}
	if c.UserAgent == "" {
		c.UserAgent = "weir/" + version()
	}
	return &Handler{
		client: &http.Client{
			Transport:     c.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		userAgent: c.UserAgent,
	}
}

// CloseIdleConnections closes the connections that are kept for later calls.
func (h *Handler) CloseIdleConnections() { h.client.CloseIdleConnections() }

// ProcessTask makes the call of one job.
func (h *Handler) ProcessTask(ctx context.Context, t *asynq.Task) error {
	r, err := Parse(t.Headers(), t.Payload())
	if err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	return h.call(ctx, r)
}

func (h *Handler) call(ctx context.Context, r Request) error {
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(callCtx, r.method(), r.URL, bytes.NewReader(r.Body))
	if err != nil { // Validate accepted it, so this is not reached; the text may repeat the URL
		return fmt.Errorf("http job: the request cannot be built: %w", asynq.SkipRetry)
	}
	req.Header.Set("User-Agent", h.userAgent)
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return &CallError{Method: r.method(), Host: req.URL.Host, Err: cause(ctx, err)}
	}
	defer func() { _ = resp.Body.Close() }()
	drain(resp, cancel)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &CallError{Method: r.method(), Host: req.URL.Host, Status: resp.StatusCode}
	}
	return nil
}

// drain reads a bounded part of an answer. The outcome is the status, so a body
// that breaks off changes nothing.
func drain(resp *http.Response, cancel context.CancelFunc) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return // the body is the bare connection, whose reads no context ends
	}
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()
	// One byte more, so that the end of a body of exactly the bound is seen.
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes+1)
}
