// Package embedded is a Redis inside the process, for demos, examples and
// trying things out with nothing installed.
//
// It keeps nothing: what is stored is gone when it is closed or the process
// ends. It runs every script in an interpreter written in Go, many times slower
// than a real Redis, and has no Sentinel, no replication and no eviction. Use a
// real Redis for work that matters, and for measurements.
package embedded

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// The bounds of the time between two rounds of expiry.
const (
	minRound = 10 * time.Millisecond
	// A round visits every key that is stored. This many times its length is left
	// to commands after it, so that expiry takes at most a tenth of the server.
	roundRest = 9
)

// A Server is a running in-process Redis. It is safe for concurrent use by any
// number of clients, in this process and in others on the same machine.
//
// TIME tells the time of the machine, in microseconds. A key expires within one
// round of its instant, early or late: 10 ms with up to some thousand keys,
// more with more.
type Server struct {
	redis *miniredis.Miniredis
	stop  func()
}

// Start starts a server on a free port of the loopback address. Close it.
func Start() (*Server, error) {
	redis, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start the embedded Redis: %w", err)
	}
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		expire(redis, stopping)
	}()
	return &Server{redis: redis, stop: sync.OnceFunc(func() {
		close(stopping)
		<-stopped
		redis.Close()
	})}, nil
}

// Addr is the address in the form 127.0.0.1:port.
func (s *Server) Addr() string { return s.redis.Addr() }

// URL is what [github.com/weirq/weir/throttle.Open] takes.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Close stops the server, drops its connections and waits for both. Closing it
// again does nothing.
func (s *Server) Close() { s.stop() }

// expire takes the time that passes off the TTLs. The server could do that by
// itself (ClockTTL), but would then visit and sort all of its keys in every
// call of every script: with 10 000 keys a script of ten calls took 25 ms
// instead of 0.4 ms.
func expire(redis *miniredis.Miniredis, stopping <-chan struct{}) {
	timer := time.NewTimer(minRound)
	defer timer.Stop()
	// By the wall clock, as TIME is: when that is set, the TTLs move with it.
	for last := time.Now().Round(0); ; {
		select {
		case <-stopping:
			return
		case <-timer.C:
		}
		start := time.Now()
		now := start.Round(0)
		redis.FastForward(now.Sub(last))
		last = now
		timer.Reset(max(minRound, roundRest*time.Since(start)))
	}
}
