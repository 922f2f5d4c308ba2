package limitertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// A step is one call, and all that it answers.
type step struct {
	at   time.Duration
	cost int64
	want string
}

const (
	ms = time.Millisecond
	us = time.Microsecond
)

func limit(rate string, burst int64) throttle.Limit {
	l, err := throttle.ParseLimit(rate, burst)
	if err != nil {
		panic(err)
	}
	return l
}

// steps are what each algorithm answers, in full.
var tables = []struct {
	name  string
	rules []limiter.Rule // that answer alike
	steps []step
}{
	{"a burst of one", buckets(limit("5/s", 1)), []step{
		{0, 1, "yes, 0 left, reset 200ms"},
		{0, 1, "no, 0 left, retry 200ms, reset 200ms"},
		{200*ms - us, 1, "no, 0 left, retry 1µs, reset 1µs"},
		{200 * ms, 1, "yes, 0 left, reset 200ms"},
	}},
	{"the wait counts the burst", buckets(limit("1/s", 5)), []step{
		{0, 1, "yes, 4 left, reset 1s"}, {0, 1, "yes, 3 left, reset 2s"}, {0, 1, "yes, 2 left, reset 3s"},
		{0, 1, "yes, 1 left, reset 4s"}, {0, 1, "yes, 0 left, reset 5s"},
		{0, 1, "no, 0 left, retry 1s, reset 5s"},
		{0, 3, "no, 0 left, retry 3s, reset 5s"},
	}},
	{"denials change nothing", buckets(limit("1/s", 1)), []step{
		{0, 1, "yes, 0 left, reset 1s"},
		{100 * ms, 1, "no, 0 left, retry 900ms, reset 900ms"}, {500 * ms, 1, "no, 0 left, retry 500ms, reset 500ms"},
		{900 * ms, 1, "no, 0 left, retry 100ms, reset 100ms"}, {time.Second, 1, "yes, 0 left, reset 1s"},
	}},
	{"less than a millisecond", buckets(throttle.Limit{Rate: 2000, Period: time.Second, Burst: 1}), []step{
		{0, 1, "yes, 0 left, reset 500µs"}, {500 * us, 1, "yes, 0 left, reset 500µs"},
		{1000 * us, 1, "yes, 0 left, reset 500µs"}, {1200 * us, 1, "no, 0 left, retry 300µs, reset 300µs"},
	}},
	{"thirds", buckets(limit("3/s", 2)), []step{
		{0, 2, "yes, 0 left, reset 666.667ms"}, {0, 1, "no, 0 left, retry 333.334ms, reset 666.667ms"},
		{333334 * us, 1, "yes, 0 left, reset 666.666ms"}, {333334 * us, 1, "no, 0 left, retry 333.333ms, reset 666.666ms"},
		{666667 * us, 1, "yes, 0 left, reset 666.667ms"}, {time.Second, 1, "yes, 0 left, reset 666.667ms"},
	}},
	{"one a day", buckets(limit("1/d", 1)), []step{
		{0, 1, "yes, 0 left, reset 24h0m0s"}, {86_399 * time.Second, 1, "no, 0 left, retry 1s, reset 1s"},
		{86_400 * time.Second, 1, "yes, 0 left, reset 24h0m0s"},
	}},
	{"a second that turns", buckets(limit("10/s", 1)), []step{
		{950 * ms, 1, "yes, 0 left, reset 100ms"}, {1000 * ms, 1, "no, 0 left, retry 50ms, reset 50ms"},
	}},
	{"a queue", []limiter.Rule{limiter.LeakyQueue(limit("5/s", 3))}, []step{
		{0, 1, "yes, 2 left, reset 200ms"}, {0, 1, "yes, 1 left, delay 200ms, reset 400ms"},
		{0, 1, "yes, 0 left, delay 400ms, reset 600ms"}, {0, 1, "no, 0 left, retry 200ms, reset 600ms"},
		{200*ms - us, 1, "no, 0 left, retry 1µs, reset 400.001ms"}, {200 * ms, 1, "yes, 0 left, delay 400ms, reset 600ms"},
		{900 * ms, 2, "yes, 1 left, reset 400ms"}, {900 * ms, 1, "yes, 0 left, delay 400ms, reset 600ms"},
	}},
	{"a part of a large cost", everything(10, time.Minute, 10), []step{
		{0, 8, "yes, 2 left"}, {0, 5, "no, 2 left"}, {0, 1, "yes, 1 left"},
	}},
	{"a fixed window", []limiter.Rule{limiter.FixedWindow(2, time.Minute)}, []step{
		{10 * time.Second, 1, "yes, 1 left, reset 50s"}, {59 * time.Second, 1, "yes, 0 left, reset 1s"},
		{60*time.Second - us, 1, "no, 0 left, retry 1µs, reset 1µs"}, {60 * time.Second, 1, "yes, 1 left, reset 1m0s"},
		{60 * time.Second, 2, "no, 1 left, retry 1m0s, reset 1m0s"},
	}},
	{"a sliding log", []limiter.Rule{limiter.SlidingLog(3, time.Second)}, []step{
		{0, 1, "yes, 2 left, reset 1s"}, {400 * ms, 2, "yes, 0 left, reset 1s"}, {500 * ms, 1, "no, 0 left, retry 500ms, reset 900ms"},
		{500 * ms, 2, "no, 0 left, retry 900ms, reset 900ms"}, {1000*ms - us, 1, "no, 0 left, retry 1µs, reset 400.001ms"},
		{1000 * ms, 1, "yes, 0 left, reset 1s"}, {1400 * ms, 3, "no, 2 left, retry 600ms, reset 600ms"},
		{1400 * ms, 2, "yes, 0 left, reset 1s"},
	}},
	{"a sliding counter", []limiter.Rule{limiter.SlidingCounter(4, time.Second)}, []step{
		{600 * ms, 4, "yes, 0 left, reset 1.4s"},
		// All of them weigh 4 x (1 - what is over of the next window).
		{900 * ms, 1, "no, 0 left, retry 350ms, reset 1.1s"}, {1250*ms - us, 1, "no, 0 left, retry 1µs, reset 750.001ms"},
		{1250 * ms, 1, "yes, 0 left, reset 1.75s"}, {1500 * ms, 1, "yes, 0 left, reset 1.5s"},
		{1500 * ms, 2, "no, 0 left, retry 500ms, reset 1.5s"}, {2000 * ms, 3, "no, 2 left, retry 500ms, reset 1s"},
		{2000 * ms, 2, "yes, 0 left, reset 2s"},
	}},
}

// buckets are those that answer alike.
func buckets(l throttle.Limit) []limiter.Rule {
	return []limiter.Rule{limiter.TokenBucket(l), limiter.LeakyBucket(l)}
}

func everything(n int64, per time.Duration, burst int64) []limiter.Rule {
	return rulesOf(n, per, burst)
}

func testSteps(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, c := range tables {
		for _, rule := range c.rules {
			t.Run(c.name+", "+rule.Algorithm().String(), func(t *testing.T) {
				b := newBench(t, open(t), rule)
				for i, s := range c.steps {
					b.at(s.at)
					got := said(b.allow("k", s.cost))
					if len(c.rules) > 2 {
						got = got[:min(len(got), len(s.want))] // their times differ
					}
					require.Equal(t, s.want, got, "step %d, at %v", i, s.at)
				}
			})
		}
	}
	for _, c := range []struct {
		name string
		rule limiter.Rule
		run  func(*bench) int
		from int
		to   int
	}{
		{"thirds for an hour", limiter.LeakyBucket(limit("3/s", 1)), hour, 10_800, 10_801},
		{"thirds for an hour, tokens", limiter.TokenBucket(limit("3/s", 1)), hour, 10_800, 10_801},
		{"parts of tokens", limiter.TokenBucket(limit("10/s", 2)), func(b *bench) int {
			b.many(2)
			b.at(30 * ms)
			return b.polls(30*ms, 2000)
		}, 599, 601},
		{"ten times a second at three", limiter.LeakyBucket(limit("3/s", 3)), tenths, 32, 32},
		{"ten times a second at three, tokens", limiter.TokenBucket(limit("3/s", 3)), tenths, 32, 32},
		{"an idle spell", limiter.LeakyBucket(limit("1/s", 2)), func(b *bench) int {
			b.many(1)
			b.at(30 * time.Second)
			return b.greedy(30*time.Second + 98*time.Second)
		}, 99, 99},
		{"a second that turns", limiter.LeakyBucket(limit("10/s", 1)), func(b *bench) int {
			b.at(950 * ms)
			return b.greedy(950*ms + 5*time.Second + us)
		}, 51, 51},
		{"a window does not begin anew with a hit", limiter.FixedWindow(10, time.Minute), func(b *bench) int {
			return b.polls(5*time.Second, 120)
		}, 100, 100},
		{"a log counts each call of an instant", limiter.SlidingLog(10, time.Second), func(b *bench) int { return b.many(50) }, 10, 10},
		{"a log does not count denials", limiter.SlidingLog(2, 4*time.Second), func(b *bench) int {
			return b.polls(time.Second, 60)
		}, 30, 30},
		{"a million a second", limiter.LeakyBucket(limit("1000000/s", 1000)), million, 1001, 1001},
		{"a million a second, tokens", limiter.TokenBucket(limit("1000000/s", 1000)), million, 1001, 1001},
		{"around an edge, fixed", limiter.FixedWindow(60, time.Minute), edge, 120, 120},
		{"around an edge, log", limiter.SlidingLog(60, time.Minute), edge, 60, 60},
		{"around an edge, counter", limiter.SlidingCounter(60, time.Minute), edge, 60, 60},
		{"a quarter of a window later", limiter.SlidingCounter(60, time.Minute), func(b *bench) int {
			edge(b)
			b.at(75 * time.Second)
			return b.many(60)
		}, 15, 15},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			if s.Slow && c.from > 1500 {
				return
			}
			got := c.run(newBench(t, s, c.rule))
			require.GreaterOrEqual(t, got, c.from)
			require.LessOrEqual(t, got, c.to)
		})
	}
}

func hour(b *bench) int { return b.greedy(time.Hour) }

func tenths(b *bench) int { return b.polls(100*ms, 100) }

func million(b *bench) int {
	passed := b.many(2000)
	b.at(us)
	return passed + b.many(10)
}

// edge asks for all of a window right before its end, and again right after it.
func edge(b *bench) int {
	b.at(59_900 * ms)
	passed := b.many(60)
	b.at(60_100 * ms)
	return passed + b.many(60)
}
