package provider

import (
	"net/http"
	"time"
)

// Slow takes its time before it answers.
type Slow struct {
	Delay time.Duration // not negative
	Next  Behaviour     // answers then; nil means an empty 200
}

// Handler makes the handler.
func (s Slow) Handler() (http.Handler, error) {
	if s.Delay < 0 {
		return nil, invalid("delay", s.Delay, "a duration that is not negative")
	}
	h, err := next(s.Next)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		takeBody(r)
		if !pause(r, s.Delay) {
			panic(http.ErrAbortHandler) // nobody is there to be answered
		}
		h.ServeHTTP(w, r)
	}), nil
}
