package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// A receiver is the other side: an HTTP server that writes down what arrives, and
// when.
type receiver struct {
	base   string
	server *http.Server
	done   chan struct{} // closed when every event has been accepted

	mu       sync.Mutex
	expected map[hook]*delivery
	accepted map[string]int // events by key
	left     int            // events yet to be accepted
	arrivals []arrival
}

// A hook names an event across all keys.
type hook struct{ key, id string }

// A delivery is how far an event has come.
type delivery struct {
	sum      [sha256.Size]byte
	refuse   bool
	attempts int
	accepted bool
}

// An arrival is one call, as it reached the receiver.
type arrival struct {
	hook
	at       time.Time
	attempt  int  // of its event, from 1; 0 if nobody sent such an event
	accepted bool // answered with 2xx
	again    bool // after it was accepted already
	intact   bool // with the body that was sent, byte for byte
}

// startReceiver serves on a free port of the loopback address.
func startReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	r := &receiver{
		base:     "http://" + listener.Addr().String() + "/hook",
		done:     make(chan struct{}),
		expected: make(map[hook]*delivery),
		accepted: make(map[string]int),
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // until close
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// url is where an event goes. Keys may hold any character.
func (r *receiver) url(key, id string) string {
	return r.base + "?" + url.Values{"key": {key}, "id": {id}}.Encode()
}

// expect tells what is going to be sent. Call it once, before anything is.
func (r *receiver) expect(destinations []destination) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range destinations {
		for _, e := range d.events {
			r.expected[hook{d.key, e.id}] = &delivery{sum: sha256.Sum256(e.body), refuse: e.refusedOnce}
			r.left++
		}
	}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now() // of the call, not of its last byte
	query := req.URL.Query()
	sum := sha256.New()
	_, err := io.Copy(sum, req.Body)
	w.WriteHeader(r.take(hook{query.Get("key"), query.Get("id")}, at, [sha256.Size]byte(sum.Sum(nil)), err == nil))
}

// take writes an arrival down and gives the status to answer it with.
func (r *receiver) take(name hook, at time.Time, sum [sha256.Size]byte, whole bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := arrival{hook: name, at: at}
	status := http.StatusNotFound
	if d := r.expected[name]; d != nil {
		d.attempts++
		a.attempt, a.again, a.intact = d.attempts, d.accepted, whole && sum == d.sum
		a.accepted = !d.refuse || d.attempts > 1
		if status = http.StatusInternalServerError; a.accepted {
			status = http.StatusNoContent
		}
		r.accept(d, a)
	}
	r.arrivals = append(r.arrivals, a)
	return status
}

func (r *receiver) accept(d *delivery, a arrival) {
	if !a.accepted || a.again {
		return
	}
	d.accepted = true
	r.accepted[a.key]++
	if r.left--; r.left == 0 {
		close(r.done)
	}
}

// seen are the arrivals so far, in the order of their instants.
func (r *receiver) seen() []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.arrivals)
	slices.SortStableFunc(all, func(a, b arrival) int { return a.at.Compare(b.at) })
	return all
}

// delivered is how many events of a key were accepted so far.
func (r *receiver) delivered(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted[key]
}

// tally tells how many of all events were accepted, in words.
func (r *receiver) tally() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d of %d events", len(r.expected)-r.left, len(r.expected))
}
