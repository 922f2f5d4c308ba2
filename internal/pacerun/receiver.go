package main

import (
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
}

type arrival struct {
	key, id string
	nth     int // of this id, from 1
}

func newReceiver(answer func(arrival) int) (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{base: "http://" + l.Addr().String(), answer: answer, seen: make(map[string]int)}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *receiver) url(key, id string) string {
	return r.base + "/" + url.PathEscape(key) + "/" + url.PathEscape(id)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	key, id, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	r.mu.Lock()
	r.seen[id]++
	a := arrival{key: key, id: id, nth: r.seen[id]}
	r.arrivals = append(r.arrivals, throttletest.Event{Key: key, ID: id, At: at})
	r.mu.Unlock()
	status := http.StatusNoContent
	if r.answer != nil {
		status = r.answer(a)
	}
	w.WriteHeader(status)
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

func (r *receiver) events() []throttletest.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]throttletest.Event(nil), r.arrivals...)
}

func (r *receiver) close() { _ = r.server.Close() }
