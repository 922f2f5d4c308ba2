package main

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirq/weir/throttle/throttletest"
)

// receiver is the other side: an HTTP server that writes down what arrives when.
type receiver struct {
	server *http.Server
	base   string
	answer func(arrival) int // status; nil means 204

	mu       sync.Mutex
	arrivals []throttletest.Event
	seen     map[string]int // by id
	answered map[string]int // by id, to callers that were still there
	open     map[string]int // requests by key
	peak     map[string]int // of open, since the last look
}

type arrival struct {
	key, id string
	nth     int             // of this id, from 1
	gone    <-chan struct{} // closed when the caller hangs up
}

func newReceiver(answer func(arrival) int) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{
		base: "http://" + l.Addr().String(), answer: answer, seen: make(map[string]int),
		answered: make(map[string]int), open: make(map[string]int), peak: make(map[string]int),
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

// taking is an endpoint that takes a while to answer.
func taking(d time.Duration) func(arrival) int {
	return func(a arrival) int {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-a.gone:
		}
		return http.StatusNoContent
	}
}

func (r *receiver) url(key, id string) string {
	return r.base + "/" + url.PathEscape(key) + "/" + url.PathEscape(id)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	key, id, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	a := r.enter(key, id, at)
	defer r.leave(key)
	_, _ = io.Copy(io.Discard, req.Body) // the server looks for a hang-up only after the body
	a.gone = req.Context().Done()
	status := http.StatusNoContent
	if r.answer != nil {
		status = r.answer(a)
	}
	if req.Context().Err() == nil {
		r.answers(id)
	}
	w.WriteHeader(status)
}

func (r *receiver) enter(key, id string, at time.Time) arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[id]++
	r.arrivals = append(r.arrivals, throttletest.Event{Key: key, ID: id, At: at})
	r.open[key]++
	r.peak[key] = max(r.peak[key], r.open[key])
	return arrival{key: key, id: id, nth: r.seen[id]}
}

func (r *receiver) answers(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[id]++
}

func (r *receiver) leave(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[key]--
}

// openAtOnce is the most requests of a key that were open at once since the last
// look.
func (r *receiver) openAtOnce(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	peak := r.peak[key]
	r.peak[key] = r.open[key]
	return peak
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals)
}

// distinct is how many ids were seen.
func (r *receiver) distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

// served is how many ids got an answer.
func (r *receiver) served() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.answered)
}

func (r *receiver) events() []throttletest.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]throttletest.Event(nil), r.arrivals...)
}

func (r *receiver) close() { _ = r.server.Close() }
