package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker/httpjob"
)

// A receiver is the other side: it writes down what arrives.
type receiver struct {
	server *httptest.Server
	answer func(id string, r *http.Request) // may take its time; nil answers at once

	mu     sync.Mutex
	events []throttletest.Event
	times  map[string]int // by id
	open   int            // calls under way
	stall  time.Duration  // the longest that this process did not get to run
}

func newReceiver(t *testing.T, answer func(id string, r *http.Request)) *receiver {
	t.Helper()
	r := &receiver{answer: answer, times: make(map[string]int)}
	r.server = httptest.NewServer(r)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r.watchStalls(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at := time.Now()
	key, id, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	r.mu.Lock()
	r.events = append(r.events, throttletest.Event{Key: key, ID: id, At: at})
	r.times[id]++
	r.open++
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(id, req)
	}
	w.WriteHeader(http.StatusNoContent)
	r.mu.Lock()
	r.open--
	r.mu.Unlock()
}

// watchStalls measures how far this process falls behind. What arrives meanwhile is
// written down late, together with what comes next.
func (r *receiver) watchStalls(stop <-chan struct{}) {
	const tick = 2 * time.Millisecond
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for last := time.Now(); ; {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		r.mu.Lock()
		r.stall = max(r.stall, now.Sub(last)-tick)
		r.mu.Unlock()
		last = now
		timer.Reset(tick)
	}
}

// job calls the receiver, which learns key and id from the path.
func (r *receiver) job(t *testing.T, key, id string) throttle.Job {
	t.Helper()
	job, err := httpjob.Request{URL: r.server.URL + "/" + url.PathEscape(key) + "/" + id}.Job(key)
	require.NoError(t, err)
	job.ID = id
	return job
}

func (r *receiver) arrivals() []throttletest.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]throttletest.Event(nil), r.events...)
}

// seen is how many ids have arrived.
func (r *receiver) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.times)
}

func (r *receiver) longestStall() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stall
}

func (r *receiver) timesOf(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.times[id]
}

// quiet tells that no call is under way and none has come for a while.
func (r *receiver) quiet(since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open == 0 && len(r.events) > 0 && time.Since(r.events[len(r.events)-1].At) > since
}
