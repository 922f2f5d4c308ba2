package provider

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
)

// Quota lets a number of calls of a key pass in a fixed window, and refuses the
// others until the window ends. The window of a key begins with its first call, and
// the next one with the first call after its end.
type Quota struct {
	Limit      int64                      // calls; at least 1
	Window     time.Duration              // throttle.MinPeriod to throttle.MaxPeriod
	Dialect    Dialect                    // the headers of every answer; None by default
	RetryAfter RetryAfter                 // of a refusal; Seconds by default
	Status     int                        // of a refusal; 0 means 429
	Key        func(*http.Request) string // nil means the path of the URL
	Now        func() time.Time           // nil means time.Now; another one is a clock that is wrong
	Next       Behaviour                  // answers the calls that pass; nil means an empty 200
}

// Handler makes the handler.
func (q Quota) Handler() (http.Handler, error) {
	if q.Limit < 1 {
		return nil, invalid("limit", q.Limit, "at least 1 call")
	}
	if q.Window < throttle.MinPeriod || q.Window > throttle.MaxPeriod {
		return nil, invalid("window", q.Window, fmt.Sprintf("%v to %v", throttle.MinPeriod, throttle.MaxPeriod))
	}
	if err := q.Dialect.validate(); err != nil {
		return nil, err
	}
	if err := q.RetryAfter.validate(); err != nil {
		return nil, err
	}
	var err error
	if q.Status, err = statusOr(q.Status, http.StatusTooManyRequests); err != nil {
		return nil, err
	}
	h := &quotaHandler{Quota: q, windows: map[string]*window{}}
	h.Key, h.Now = keyed(q.Key), clock(q.Now)
	h.next, err = next(q.Next)
	return h, err
}

type quotaHandler struct {
	Quota
	next http.Handler

	mu      sync.Mutex
	windows map[string]*window
}

type window struct {
	ends time.Time
	used int64
}

// take counts a call if it passes.
func (h *quotaHandler) take(key string) (passes bool, remaining int64, now, ends time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now = h.Now()
	w := h.windows[key]
	if w == nil || !now.Before(w.ends) {
		w = &window{ends: now.Add(h.Window)}
		h.windows[key] = w
	}
	if w.used < h.Limit {
		w.used++
		passes = true
	}
	return passes, h.Limit - w.used, now, w.ends
}

func (h *quotaHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	passes, remaining, now, ends := h.take(h.Key(r))
	w.Header().Set("Date", httpDate(now))
	h.Dialect.tell(w.Header(), h.Quota, remaining, now, ends)
	if passes {
		h.next.ServeHTTP(w, r)
		return
	}
	refused(r)
	h.RetryAfter.tell(w.Header(), now, ends)
	w.WriteHeader(h.Status)
	_, _ = io.WriteString(w, "over the limit\n")
}
