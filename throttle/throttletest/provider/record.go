package provider

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirq/weir/throttle/throttletest"
)

// A Call is one that came in.
type Call struct {
	Key     string
	Method  string
	At      time.Time // its arrival, before anything was done about it
	Status  int       // of the answer; 0: none was begun
	Refused bool      // that it was over a limit of a [Quota] or [Bucket], or was answered 429
}

// A Record is an http.Handler that remembers the calls to another. It is safe for
// concurrent use. What a caller has got an answer to is in it.
type Record struct {
	next http.Handler
	key  func(*http.Request) string

	mu    sync.Mutex
	calls []*Call
	live  map[net.Conn]struct{} // that carried a call
	conns int
}

// NewRecord remembers the calls to next by key; nil means by the path of the URL.
// Connections are counted once it is attached to the server.
func NewRecord(next http.Handler, key func(*http.Request) string) *Record {
	return &Record{next: next, key: keyed(key), live: map[net.Conn]struct{}{}}
}

// Attach counts the connections of a server, before it is started.
func (rec *Record) Attach(s *http.Server) {
	before := s.ConnState
	s.ConnState = func(c net.Conn, state http.ConnState) {
		rec.connection(c, state)
		if before != nil {
			before(c, state)
		}
	}
}

func (rec *Record) connection(c net.Conn, state http.ConnState) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	switch state {
	case http.StateActive:
		if _, ok := rec.live[c]; !ok {
			rec.live[c] = struct{}{}
			rec.conns++
		}
	case http.StateClosed, http.StateHijacked:
		delete(rec.live, c)
	}
}

// ServeHTTP passes a call on and remembers it.
func (rec *Record) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &Call{Key: rec.key(r), Method: r.Method, At: time.Now()}
	rec.mu.Lock()
	rec.calls = append(rec.calls, c)
	rec.mu.Unlock()
	a := &answer{ResponseWriter: w, record: rec, call: c}
	rec.next.ServeHTTP(a, r.WithContext(context.WithValue(r.Context(), answerKey{}, a)))
	a.begun(http.StatusOK)
}

// An answer notes what becomes of its call.
type answer struct {
	http.ResponseWriter
	record *Record
	call   *Call
}

type answerKey struct{}

// refused notes that the call is over a limit, whatever the status it is told so with.
func refused(r *http.Request) {
	if a, ok := r.Context().Value(answerKey{}).(*answer); ok {
		a.record.mu.Lock()
		defer a.record.mu.Unlock()
		a.call.Refused = true
	}
}

// begun notes the first status. It does so before the caller can see it.
func (a *answer) begun(status int) {
	a.record.mu.Lock()
	defer a.record.mu.Unlock()
	if a.call.Status == 0 && status >= http.StatusOK {
		a.call.Status = status
		a.call.Refused = a.call.Refused || status == http.StatusTooManyRequests
	}
}

// WriteHeader begins the answer.
func (a *answer) WriteHeader(status int) {
	a.begun(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (a *answer) Write(b []byte) (int, error) {
	a.begun(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Calls are all calls in the order of their arrival.
func (rec *Record) Calls() []Call {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	calls := make([]Call, len(rec.calls))
	for i, c := range rec.calls {
		calls[i] = *c
	}
	return calls
}

// Count is how many calls came in.
func (rec *Record) Count() int { return len(rec.Calls()) }

// Refusals is how many calls were over a limit.
func (rec *Record) Refusals() int {
	n := 0
	for _, c := range rec.Calls() {
		if c.Refused {
			n++
		}
	}
	return n
}

// Connections is how many connections carried a call.
func (rec *Record) Connections() int {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.conns
}

// Accepted are the instants of the calls of a key that were over no limit. One that
// failed for another reason is among them.
func (rec *Record) Accepted(key string) []time.Time { return rec.instants(key, false) }

// Refused are the instants of the calls of a key that were over a limit.
func (rec *Record) Refused(key string) []time.Time { return rec.instants(key, true) }

func (rec *Record) instants(key string, refused bool) []time.Time {
	var at []time.Time
	for _, c := range rec.Calls() {
		if c.Key == key && c.Refused == refused {
			at = append(at, c.At)
		}
	}
	return at
}

// Events are all calls, accepted or not, for [throttletest.Measure]: the pace of who
// calls, without ids.
func (rec *Record) Events() []throttletest.Event {
	var events []throttletest.Event
	for _, c := range rec.Calls() {
		events = append(events, throttletest.Event{Key: c.Key, At: c.At})
	}
	return events
}
