package httpjob

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/worker"
)

// Config sets up a [Handler]. The zero Config is ready for use.
type Config struct {
	UserAgent string // for calls that set none; empty means "weir/VERSION"

	// AllowNetworks are networks that calls may reach although they are not public, such as
	// 127.0.0.0/8. None by default. An IPv4 network covers its addresses in their IPv6 form.
	AllowNetworks []netip.Prefix
	// Proxy finds the proxy for a call; nil means none, for any. http.ProxyFromEnvironment and
	// http.ProxyURL are of this kind. What a name resolves to at the proxy is for the proxy to
	// judge; the proxy itself may be at any address.
	Proxy func(*http.Request) (*url.URL, error)
	// TLS is for the roots to trust, by default those of the system, and for client
	// certificates. Certificates are verified and versions below 1.2 refused, whatever it says.
	TLS      *tls.Config
	Resolver *net.Resolver // of names; nil means net.DefaultResolver

	// OnAnswer is told of every answer to a call, within the attempt and its time; nil means nobody. job
	// is the zero Info outside of a worker. It is called by many goroutines at once.
	OnAnswer func(ctx context.Context, job worker.Info, a Answer)

	// Transport makes the calls in place of the handler's own. What AllowNetworks, Proxy, TLS and
	// Resolver say is then up to it, and so is what it keeps from being called.
	Transport http.RoundTripper
}

// A Handler makes the calls of jobs of type [Type]. It is an asynq.Handler and
// safe for concurrent use.
//
// An answer with a status of Request.Success, 2xx by default, is success. What else
// can happen is a [*CallError], and is for the worker to go on with:
//
//   - refused for a limit, which is 429, 503 with Retry-After, and 403 with Retry-After or
//     with nothing remaining: wraps worker.ErrRefused;
//   - never to be tried again, which is 410, an address that calls may not reach (see
//     [BlockedError]), and a task that is no call: wraps asynq.SkipRetry;
//   - anything else is tried again, as often as the job allows: any other status, 404 as well as
//     500, a name that is not found, a connection that is refused or breaks, and a timeout.
//
// The key of the job is told as well, see [worker.Tell]: being over a limit, failure for an
// answer of 408 or 5xx or none at all, and success for any other answer, as somebody is there; with the time that the answer asks it to rest.
//
// A redirect is an answer like any other, unless the call says how many it follows: then 307 and
// 308 are, and 301, 302 and 303 for a GET or HEAD without a body, which is all that they would leave of
// another call. From https to http none is. Where the host changes, the headers are left behind but for
// those that describe the body, what is accepted and the client: they may be credentials.
//
// The call ends with the context, which is where a timeout comes from. Nothing
// is added to the request but a User-Agent. One attempt is one request, with an
// exception of net/http: on a kept connection that broke before any answer, a
// call without a body and with a safe method, or one with an Idempotency-Key
// header, is sent again at once.
type Handler struct {
	client    *http.Client
	userAgent string
	onAnswer  func(context.Context, worker.Info, Answer)
}

var _ asynq.Handler = (*Handler)(nil)

// NewHandler makes a handler.
func NewHandler(c Config) *Handler {
	if c.Transport == nil {
		c.Transport = newTransport(c)
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
		onAnswer:  c.OnAnswer,
	}
}

// CloseIdleConnections closes the connections that are kept for later calls.
func (h *Handler) CloseIdleConnections() { h.client.CloseIdleConnections() }

// ProcessTask makes the call of one job.
func (h *Handler) ProcessTask(ctx context.Context, t *asynq.Task) error {
	r, err := Parse(t.Headers(), t.Payload())
	if err != nil {
		return &marked{err, asynq.SkipRetry}
	}
	return h.call(ctx, r)
}

// Call makes one call, as [Handler.ProcessTask] does for that of a job. ctx is that of a
// handler, where there is one: the key of its job is told how the call went.
func (h *Handler) Call(ctx context.Context, r Request) error {
	if err := r.Validate(); err != nil {
		return &marked{fmt.Errorf("http job: %w", err), asynq.SkipRetry}
	}
	return h.call(ctx, r)
}

func (h *Handler) call(ctx context.Context, r Request) error {
	if r.Timeout > 0 {
		timed, stop := context.WithTimeout(ctx, r.Timeout)
		defer stop()
		ctx = timed
	}
	watch := &stopwatch{start: time.Now()}
	got, host, err := h.exchange(ctx, r, watch)
	if errors.Is(err, errUnbuilt) {
		return &marked{err, asynq.SkipRetry}
	}
	var v verdict
	if err != nil {
		v = r.judgeFailure(ctx, host, err)
	} else {
		v = r.judge(got, time.Now())
	}
	_ = worker.Tell(ctx, v.feedback) // fails outside of a worker, where there is no key to tell of
	if err == nil && h.onAnswer != nil {
		job, _ := worker.JobFrom(ctx)
		h.onAnswer(ctx, job, got.answer(watch.stop()))
	}
	return v.err
}

// exchange makes the request and those that it is redirected to. host is the one that was
// called last.
func (h *Handler) exchange(ctx context.Context, r Request, watch *stopwatch) (got received, host string, err error) {
	for hop := 0; ; hop++ {
		if got, host, err = h.send(ctx, r, watch); err != nil {
			return got, host, err
		}
		if hop == r.Redirects || r.succeeds(got.status) {
			return got, host, nil
		}
		next, ok := r.follow(got.status, got.header.Get("Location"), got.from)
		if !ok {
			return got, host, nil
		}
		r = next
	}
}

// errUnbuilt is not reached, as what Validate accepts can be built. The text of net/http may
// repeat the URL.
var errUnbuilt = errors.New("http job: the request cannot be built")

// send makes one request.
func (h *Handler) send(ctx context.Context, r Request, watch *stopwatch) (got received, host string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h.onAnswer != nil {
		ctx = watch.watch(ctx)
	}
	req, err := http.NewRequestWithContext(ctx, r.method(), r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return got, "", errUnbuilt
	}
	req.Header.Set("User-Agent", h.userAgent)
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	if u := req.URL.User; u != nil && req.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		req.SetBasicAuth(u.Username(), password)
	}
	// Not through the client: it has an opinion of Location headers that cannot be read.
	resp, err := h.client.Transport.RoundTrip(req)
	if err != nil {
		return got, req.URL.Host, err
	}
	defer func() { _ = resp.Body.Close() }()
	return receive(resp, h.onAnswer != nil, cancel), req.URL.Host, nil
}
