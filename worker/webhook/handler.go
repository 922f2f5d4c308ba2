package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// Type is the job type of a delivery.
const Type = "webhook"

// The headers of a job. Those with a colon are not sent.
const (
	endpointHeader    = ":endpoint" // id of the endpoint
	eventHeader       = ":event"    // type of the event
	timeHeader        = ":time"     // of the event, RFC 3339
	contentTypeHeader = "content-type"
)

// A Caller makes one HTTP call, and judges the answer. An [*httpjob.Handler] does.
type Caller interface {
	Call(ctx context.Context, r httpjob.Request) error
}

// Config sets up a [Handler].
type Config struct {
	Endpoints *Endpoints
	Caller    Caller
	Now       func() time.Time // the time of an attempt; nil means time.Now
}

// A Handler makes the calls of jobs of type [Type]. It is an asynq.Handler and safe for
// concurrent use.
//
// Each attempt has the URL, the headers and the secrets of the endpoint as they are then, or
// were up to 2s before, with a timestamp and signatures of its own; its webhook-id is always
// the event's. What an answer means is the Caller's to say.
//
// The job of an endpoint that was deleted, and one that is no delivery, fail for good:
// the error wraps asynq.SkipRetry. That of a disabled endpoint goes back to its place in
// the line, as its error wraps [worker.ErrPark], and the key is paused, if Disable did
// not get so far.
type Handler struct {
	endpoints *Endpoints
	caller    Caller
	now       func() time.Time
	cache     cache
}

var _ asynq.Handler = (*Handler)(nil)

// NewHandler makes a handler. The error is a [*throttle.InvalidError].
func NewHandler(c Config) (*Handler, error) {
	if c.Endpoints == nil {
		return nil, invalid("endpoints", describe("nil"), "those from NewEndpoints")
	}
	if c.Caller == nil {
		return nil, invalid("caller", describe("nil"), "one that makes calls, such as an httpjob.Handler")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Handler{endpoints: c.Endpoints, caller: c.Caller, now: c.Now}, nil
}

// ProcessTask makes one attempt at a delivery.
func (h *Handler) ProcessTask(ctx context.Context, t *asynq.Task) error {
	headers := t.Headers()
	id, event := headers[endpointHeader], headers[IDHeader]
	if !isEndpointID(id) || !isMessageID(event) {
		return fmt.Errorf("webhook: the job has no %s or no %s, so it was not made by Publish: %w",
			endpointHeader, IDHeader, asynq.SkipRetry)
	}
	e, err := h.endpoint(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("webhook: endpoint %q was deleted: %w", id, asynq.SkipRetry)
	case err != nil:
		return fmt.Errorf("webhook: endpoint %q: %w", id, err)
	case e.Disabled:
		return h.refuse(ctx, e)
	}
	r, err := request(e, event, headers[contentTypeHeader], t.Payload(), h.now())
	if err != nil {
		return fmt.Errorf("webhook: endpoint %q: %w", id, err)
	}
	return h.caller.Call(ctx, r)
}

// endpoint reads an endpoint. That it is disabled is not believed of the cache: it would
// pause a key that was just resumed.
func (h *Handler) endpoint(ctx context.Context, id string) (Endpoint, error) {
	if e, ok := h.cache.get(id, h.now()); ok && !e.Disabled {
		return e, nil
	}
	e, err := h.endpoints.Get(ctx, id)
	if err != nil {
		return Endpoint{}, err
	}
	h.cache.put(e, h.now())
	return e, nil
}

func (h *Handler) refuse(ctx context.Context, e Endpoint) error {
	err := fmt.Errorf("webhook: endpoint %q is disabled: %w", e.ID, worker.ErrPark)
	return errors.Join(err, h.endpoints.settle(ctx, e.Key))
}

// request is the call of one attempt.
func request(e Endpoint, event, contentType string, body []byte, at time.Time) (httpjob.Request, error) {
	signed, err := Sign(event, at, body, e.signing(at)...)
	if err != nil {
		return httpjob.Request{}, err
	}
	r := httpjob.Request{Method: http.MethodPost, URL: e.URL, Body: body, Headers: make(map[string]string)}
	maps.Copy(r.Headers, e.Headers)
	own := false
	for name := range e.Headers {
		own = own || http.CanonicalHeaderKey(name) == http.CanonicalHeaderKey(contentTypeHeader)
		if isSigned(name) { // not one of Create's
			delete(r.Headers, name)
		}
	}
	if contentType != "" && !own {
		r.Headers[contentTypeHeader] = contentType
	}
	for _, name := range []string{IDHeader, TimestampHeader, SignatureHeader} {
		r.Headers[name] = signed.Get(name)
	}
	return r, r.Validate()
}
