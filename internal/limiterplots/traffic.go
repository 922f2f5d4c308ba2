package main

import (
	"context"
	"slices"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// All algorithms have the same limit: 10 per 10 s, which for buckets is 1/s with a burst of 10.
const (
	units  = 10
	window = 10 * time.Second
	end    = 40 * time.Second // of the plots: by then the last of a queue has left
)

// A subject is an algorithm and the name of its plot.
type subject struct {
	file string
	rule limiter.Rule
	// rate is what more may pass in a window the later it is, cost a second; 0 for those that count in windows.
	rate float64
	// atOnce is how much may pass at its start.
	atOnce float64
	bound  string
}

var bucket = throttle.Limit{Rate: 1, Period: time.Second, Burst: units}

var subjects = []subject{
	{"fixed-window", limiter.FixedWindow(units, window), 0, units, "limit: 10 more"},
	{"sliding-log", limiter.SlidingLog(units, window), 0, units, "limit: 10 more"},
	{"sliding-counter", limiter.SlidingCounter(units, window), 0, units, "limit: 10 more"},
	{"token-bucket", limiter.TokenBucket(bucket), 1, units, "limit: burst + rate × t"},
	{"leaky-bucket", limiter.LeakyBucket(bucket), 1, units, "limit: burst + rate × t"},
	{"leaky-queue", limiter.LeakyQueue(bucket), 1, 1, "limit: 1 + rate × t"},
}

// A phase is calls at even distances, its end excluded.
type phase struct {
	name        string
	from, until time.Duration
	every       time.Duration // 0 for no calls
}

// phases are the traffic. The burst goes over the edge of a window.
var phases = []phase{
	{"trickle", 1 * time.Second, 9 * time.Second, 3 * time.Second},
	{"burst", 9500 * time.Millisecond, 10550 * time.Millisecond, 50 * time.Millisecond},
	{"pause", 10550 * time.Millisecond, 18 * time.Second, 0},
	{"flood", 18 * time.Second, 30 * time.Second, 100 * time.Millisecond},
}

// calls are the instants of the traffic.
func calls() []time.Duration {
	var at []time.Duration
	for _, p := range phases {
		for t := p.from; p.every > 0 && t < p.until; t += p.every {
			at = append(at, t)
		}
	}
	return at
}

// An observation is what became of the traffic. All times are since the start, in order.
type observation struct {
	subject
	asked   []time.Duration
	allowed []time.Duration
	passed  []time.Duration // when what was allowed went: later only in a queue
	// worst is the start of the first of the windows in which most passed, and how much did.
	worst time.Duration
	most  int
}

// observe sends the traffic to a limiter.
func observe(s subject) (observation, error) {
	start := time.Unix(1_700_000_000, 0) // the start of a window
	now := start
	l, err := limiter.New(limiter.NewMemory(limiter.MemoryConfig{Now: func() time.Time { return now }}), s.file, s.rule)
	if err != nil {
		return observation{}, err
	}
	o := observation{subject: s, asked: calls()}
	for _, at := range o.asked {
		now = start.Add(at)
		r, err := l.Allow(context.Background(), "key")
		if err != nil {
			return observation{}, err
		}
		if r.Allowed {
			o.allowed = append(o.allowed, at)
			o.passed = append(o.passed, at+r.Delay)
		}
	}
	o.worst, o.most = fullest(o.passed)
	return o, nil
}

// fullest is the first of the windows in which most passed. A window begins with something that passed, and
// its end is no part of it.
func fullest(passed []time.Duration) (from time.Duration, most int) {
	for i, t := range passed {
		after, _ := slices.BinarySearch(passed, t+window)
		if after-i > most {
			from, most = t, after-i
		}
	}
	return from, most
}

// before is how much passed before an instant.
func (o observation) before(at time.Duration) int {
	n, _ := slices.BinarySearch(o.passed, at)
	return n
}
