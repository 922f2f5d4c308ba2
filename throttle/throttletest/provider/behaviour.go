package provider

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weirq/weir/throttle"
)

// A Behaviour is a way to answer calls.
type Behaviour interface {
	// Handler makes a handler that behaves so, with a state of its own. The error is a
	// [*throttle.InvalidError] that names the first setting out of bounds.
	Handler() (http.Handler, error)
}

// Func is a Behaviour made by hand.
type Func func(http.ResponseWriter, *http.Request)

// Handler makes the handler. It never fails.
func (f Func) Handler() (http.Handler, error) { return http.HandlerFunc(f), nil }

// Answer answers every call alike. The zero Answer is an empty 200.
type Answer struct {
	Status int // 200 to 599; 0 means 200
	Header http.Header
	Body   string
}

// Handler makes the handler.
func (a Answer) Handler() (http.Handler, error) {
	status, err := statusOr(a.Status, http.StatusOK)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range a.Header {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, a.Body)
	}), nil
}

// next makes the handler of a Next; nil stands for an empty 200.
func next(b Behaviour) (http.Handler, error) {
	if b == nil {
		b = Answer{}
	}
	h, err := b.Handler()
	var e *throttle.InvalidError
	if errors.As(err, &e) {
		return nil, &throttle.InvalidError{Field: "next." + e.Field, Value: e.Value, Allowed: e.Allowed}
	}
	return h, err
}

func statusOr(given, otherwise int) (int, error) {
	if given == 0 {
		return otherwise, nil
	}
	if given < 200 || given > 599 {
		return 0, invalid("status", given, "200 to 599, or 0 for the default")
	}
	return given, nil
}

func invalid(field string, value any, allowed string) error {
	return &throttle.InvalidError{Field: field, Value: value, Allowed: allowed}
}

// keyed is what calls are told apart by.
func keyed(key func(*http.Request) string) func(*http.Request) string {
	if key == nil {
		return func(r *http.Request) string { return r.URL.Path }
	}
	return key
}

func clock(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// takeBody reads the body and puts it back. Only then does net/http notice that the
// caller has gone, and end the context of the call.
func takeBody(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// pause tells whether the caller is still there after d.
func pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
