package httplimit

import "net/http"

// ClientKey is the key that the limiter is asked with.
func (m *Middleware) ClientKey(r *http.Request) string { return m.client(r) }

// CallsUnderWay is how many calls have not ended.
func (m *Middleware) CallsUnderWay() int { return len(m.calls) }

// StuckCalls is how many of them were given up.
func (m *Middleware) StuckCalls() int64 { return m.stuck.Load() }
