package provider

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
)

// Flaky fails some calls: every nth, or at random a ratio of them. Which ones, in
// the order of their arrival, is the same for the same settings.
type Flaky struct {
	Every  int       // the nth, 2nth, … call fails; 0 means by Ratio
	Ratio  float64   // of the calls that fail, 0 to 1; only without Every
	Seed   uint64    // of what is at random
	Status int       // of a failure; 0 means 500
	Next   Behaviour // answers the others; nil means an empty 200
}

// Handler makes the handler.
func (f Flaky) Handler() (http.Handler, error) {
	if f.Every < 0 {
		return nil, invalid("every", f.Every, "at least 1, or 0 to fail by ratio")
	}
	if !(f.Ratio >= 0 && f.Ratio <= 1) { // also refuses what is not a number
		return nil, invalid("ratio", f.Ratio, "0 to 1")
	}
	if f.Every > 0 && f.Ratio > 0 {
		return nil, invalid("ratio", f.Ratio, "0 beside every: only one of the two")
	}
	status, err := statusOr(f.Status, http.StatusInternalServerError)
	if err != nil {
		return nil, err
	}
	h, err := next(f.Next)
	if err != nil {
		return nil, err
	}
	fails := f.fails()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fails() {
			h.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "failed\n")
	}), nil
}

// fails tells of one call after the other whether it fails.
func (f Flaky) fails() func() bool {
	var (
		mu     sync.Mutex
		n      int
		random = rand.New(rand.NewPCG(f.Seed, 0))
	)
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		n++
		if f.Every > 0 {
			return n%f.Every == 0
		}
		return random.Float64() < f.Ratio
	}
}
