package httplimit

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weirq/weir/throttle/limiter"
)

// A Middleware asks a limiter before it lets a request through. It may be used by any number of
// goroutines and in front of any number of handlers, which then share the limit.
type Middleware struct {
	config   Config
	proxies  proxies
	policies policies
	outages  slowLog // each message has its own second, so that none hides another
	costs    slowLog

	calls chan struct{} // holds one for each call under way
	stuck atomic.Int64  // calls under way that were given up
}

// New makes a middleware. The error is a [*throttle.InvalidError] that names the field.
func New(c Config) (*Middleware, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	trusted, err := newProxies(c.TrustedProxies)
	if err != nil {
		return nil, err
	}
	p, err := newPolicies(c.Limiter)
	if err != nil {
		return nil, err
	}
	return &Middleware{
		config: c, proxies: trusted, policies: p,
		outages: slowLog{logger: c.Logger, message: "limiter gave no answer"},
		costs:   slowLog{logger: c.Logger, message: "cost of a request is below 1"},
		calls:   make(chan struct{}, c.MaxCalls),
	}, nil
}

// Handler puts the middleware in front of a handler.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.admit(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// admit tells whether a request may go on; if not it has been answered.
func (m *Middleware) admit(w http.ResponseWriter, r *http.Request) bool {
	if m.config.Skip != nil && m.config.Skip(r) {
		return true
	}
	cost := int64(1)
	if m.config.Cost != nil {
		cost = m.config.Cost(r)
	}
	if cost < 1 {
		m.costs.error(r.Context(), "limiter", m.config.Limiter.Name(), "cost", cost)
		m.refuse(w, r, costBroken())
		return false
	}
	key := m.client(r)

	// Before the call: what is counted from the decision is then never told a second too late
	// for the time that the call took.
	now := m.config.Now()
	result, err := m.ask(r.Context(), func(ctx context.Context) (limiter.Result, error) {
		return m.config.Limiter.AllowN(ctx, key, cost)
	})
	never := new(limiter.NeverError)
	switch {
	case errors.As(err, &never):
		m.refuse(w, r, tooCostly(never))
		return false
	case err != nil:
		return m.outage(w, r, err)
	case !result.Allowed:
		m.policies.set(w.Header(), now, result)
		m.refuse(w, r, m.policies.denial(result, cost))
		return false
	}
	m.policies.set(w.Header(), now, result)
	if !wait(r.Context(), result.Delay) {
		m.refuse(w, r, cutShort())
		return false
	}
	return true
}

// outage decides without the limiter.
func (m *Middleware) outage(w http.ResponseWriter, r *http.Request, err error) bool {
	m.outages.error(r.Context(),
		"limiter", m.config.Limiter.Name(), "fails", m.config.OnError.String(), "error", err)
	if m.config.OnError == FailOpen {
		return true
	}
	m.refuse(w, r, unavailable())
	return false
}

// refuse answers a request that does not go on.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, p Problem) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	m.config.Deny(w, r, p)
}

// wait blocks until a turn has come. It is false if the context ends before.
func wait(ctx context.Context, turn time.Duration) bool {
	if turn <= 0 {
		return true
	}
	timer := time.NewTimer(turn)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
