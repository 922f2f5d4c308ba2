// Package limitertest is the contract of a store of limiters, as tests: what every algorithm
// promises, exact to the microsecond on a clock that the tests move.
package limitertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// A Store is an empty store of limiters on a clock that a test moves.
type Store struct {
	limiter.Store
	// Set moves the clock of the store, and what expires by it, forward or back.
	Set func(time.Time)
	// Slow is for a store whose calls take milliseconds: runs of ten thousand calls are left to others.
	Slow bool
}

// fewer is n, or a quarter of it on a slow store.
func (s Store) fewer(n int) int {
	if s.Slow {
		return n / 4
	}
	return n
}

// Epoch is where the suite's clocks begin: the start of a UTC day.
var Epoch = time.Unix(1_699_920_000, 0).UTC()

// Run proves that a store keeps what every algorithm of package limiter promises,
// exact to the microsecond. open returns a store for each test; a test may open several.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	t.Run("steps", func(t *testing.T) { testSteps(t, open) })
	t.Run("all at once", func(t *testing.T) { testAtOnce(t, open(t)) })
	t.Run("bad input", func(t *testing.T) { testInput(t, open(t)) })
	t.Run("several rules", func(t *testing.T) { testRules(t, open) })
	t.Run("changed limits", func(t *testing.T) { testChanges(t, open) })
	t.Run("clock steps", func(t *testing.T) { testClock(t, open) })
	t.Run("reservations", func(t *testing.T) { testReservations(t, open) })
	t.Run("against a model", func(t *testing.T) { testModel(t, open) })
	t.Run("every window", func(t *testing.T) { testWindows(t, open) })
}

// A bench is one limiter of a store, and its clock.
type bench struct {
	t     require.TestingT
	store Store
	l     *limiter.Limiter
	since time.Duration // Epoch
}

func newBench(t require.TestingT, s Store, rules ...limiter.Rule) *bench {
	b := &bench{t: t, store: s}
	b.use(rules...)
	b.at(0)
	return b
}

// use goes on under other rules.
func (b *bench) use(rules ...limiter.Rule) {
	l, err := limiter.New(b.store.Store, "suite", rules...)
	require.NoError(b.t, err)
	b.l = l
}

func (b *bench) at(since time.Duration) {
	b.since = since
	b.store.Set(Epoch.Add(since))
}

func (b *bench) allow(key string, cost int64) limiter.Result {
	r, err := b.l.AllowN(context.Background(), key, cost)
	require.NoError(b.t, err)
	return r
}

// many counts what passes of n calls at one instant.
func (b *bench) many(n int) int {
	passed := 0
	for range n {
		if b.allow("k", 1).Allowed {
			passed++
		}
	}
	return passed
}

// greedy counts what passes until an instant, to one that comes back when it is told to.
func (b *bench) greedy(until time.Duration) int {
	passed := 0
	for b.since < until {
		r := b.allow("k", 1)
		if r.Allowed {
			passed++
			continue
		}
		require.Positive(b.t, r.RetryAfter)
		b.at(b.since + r.RetryAfter)
	}
	return passed
}

// follow comes back when it is told to, until it is allowed, which must be soon.
func (b *bench) follow(most time.Duration) {
	until := b.since + most
	for {
		r := b.allow("k", 1)
		if r.Allowed {
			return
		}
		require.Positive(b.t, r.RetryAfter)
		b.at(b.since + r.RetryAfter)
		require.LessOrEqual(b.t, b.since, until, "%v", b.l)
	}
}

// polls counts what passes to one that comes every so often, n times.
func (b *bench) polls(every time.Duration, n int) int {
	passed, from := 0, b.since
	for i := range n {
		b.at(from + time.Duration(i)*every)
		r := b.allow("k", 1)
		require.GreaterOrEqual(b.t, r.Remaining, int64(0))
		require.LessOrEqual(b.t, r.Remaining, r.Limit)
		if r.Allowed {
			passed++
		}
	}
	return passed
}

// said is a result as the tables have it.
func said(r limiter.Result) string {
	text := fmt.Sprintf("no, %d left", r.Remaining)
	if r.Allowed {
		text = fmt.Sprintf("yes, %d left", r.Remaining)
	}
	for name, d := range map[string]time.Duration{", delay ": r.Delay, ", retry ": r.RetryAfter} {
		if d != 0 {
			text += name + d.String()
		}
	}
	return text + ", reset " + r.ResetAfter.String()
}

func perSecond(n, burst int64) throttle.Limit {
	return throttle.Limit{Rate: n, Period: time.Second, Burst: burst}
}

// rulesOf are all algorithms with the same numbers.
func rulesOf(n int64, per time.Duration, burst int64) []limiter.Rule {
	l := throttle.Limit{Rate: n, Period: per, Burst: burst}
	return []limiter.Rule{
		limiter.FixedWindow(n, per), limiter.SlidingLog(n, per), limiter.SlidingCounter(n, per),
		limiter.TokenBucket(l), limiter.LeakyBucket(l), limiter.LeakyQueue(l),
	}
}

// testAtOnce has 500 goroutines ask for one key.
func testAtOnce(t *testing.T, s Store) {
	t.Helper()
	for i, rule := range rulesOf(50, time.Minute, 50) {
		t.Run(rule.Algorithm().String(), func(t *testing.T) {
			s.Set(Epoch)
			l, err := limiter.New(s.Store, fmt.Sprintf("at-once-%d", i), rule)
			require.NoError(t, err)
			var wg sync.WaitGroup
			results, errs := make([]limiter.Result, 500), make([]error, 500)
			for n := range results {
				wg.Go(func() { results[n], errs[n] = l.Allow(context.Background(), "k") })
			}
			wg.Wait()
			passed := 0
			for n, r := range results {
				require.NoError(t, errs[n])
				if r.Allowed {
					passed++
				}
			}
			require.Equal(t, 50, passed)
		})
	}
}

func testInput(t *testing.T, s Store) {
	t.Helper()
	s.Set(Epoch)
	ctx := context.Background()
	for _, rule := range rulesOf(5, time.Second, 5) {
		t.Run(rule.Algorithm().String(), func(t *testing.T) {
			b := newBench(t, s, rule)
			key := rule.Algorithm().String()
			b.allow(key, 3)
			before, err := b.l.Peek(ctx, key)
			require.NoError(t, err)
			for _, cost := range []int64{0, -1, -1_000_000_000} {
				_, err := b.l.AllowN(ctx, key, cost)
				require.ErrorIs(t, err, throttle.ErrInvalid)
				require.ErrorContains(t, err, "cost")
				_, err = b.l.Reserve(ctx, key, cost, time.Hour)
				require.ErrorIs(t, err, throttle.ErrInvalid)
			}
			for _, cost := range []int64{6, 9223372036854775807} {
				_, err := b.l.AllowN(ctx, key, cost)
				var never *limiter.NeverError
				require.ErrorAs(t, err, &never)
				require.Equal(t, limiter.NeverError{Cost: cost, Most: 5}, *never)
				require.ErrorAs(t, b.l.Wait(ctx, key, cost), &never)
			}
			for _, key := range []string{"", "\xff", string(make([]byte, throttle.MaxKeyBytes+1))} {
				_, err := b.l.Allow(ctx, key)
				require.ErrorIs(t, err, throttle.ErrInvalid)
				require.ErrorIs(t, b.l.Reset(ctx, key), throttle.ErrInvalid)
			}
			_, err = b.l.AllowMany(ctx, limiter.Call{Key: key}, limiter.Call{Key: key, Cost: 6})
			require.ErrorContains(t, err, "calls[1]")
			after, err := b.l.Peek(ctx, key)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// testRules has several rules on one key: all allow, or nothing is charged.
func testRules(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	b := newBench(t, open(t), limiter.TokenBucket(perSecond(10, 4)), limiter.FixedWindow(6, time.Minute), limiter.SlidingLog(20, time.Hour))
	require.Equal(t, 4, b.many(10))
	b.at(time.Second)
	require.Equal(t, 2, b.many(10), "the minute is used up")
	r := b.allow("k", 1)
	require.Equal(t, "no, 0 left, retry 59s, reset 59s", said(r))
	require.Equal(t, []limiter.RuleResult{
		{Limit: 4, Remaining: 2, ResetAfter: 200 * time.Millisecond},
		{Limit: 6, Remaining: 0, ResetAfter: 59 * time.Second},
		{Limit: 20, Remaining: 14, ResetAfter: time.Hour},
	}, r.Rules, "denied calls took nothing from any rule")
	b.at(time.Minute)
	require.True(t, b.allow("k", 4).Allowed)
	require.False(t, b.allow("k", 1).Allowed)
	for i := range 4 {
		b.at(time.Duration(i+2) * time.Minute)
		b.many(10)
	}
	r = b.allow("k", 1)
	require.Equal(t, int64(0), r.Rules[2].Remaining)
	require.Equal(t, 55*time.Minute, r.RetryAfter)

	for _, key := range []string{"}", "{", "{}", "a}b{c", " ", "a:b", "\x00", "ü"} {
		require.Equal(t, "yes, 3 left, reset 100ms", said(b.allow(key, 1)), "%q", key)
		require.NoError(t, b.l.Reset(context.Background(), key))
		require.Equal(t, "yes, 3 left, reset 100ms", said(b.allow(key, 1)), "%q", key)
	}

	_, err := limiter.New(b.store.Store, "most", limiter.FixedWindow(6, time.Minute), limiter.LeakyQueue(perSecond(1, 4)))
	require.ErrorContains(t, err, `rules[1] "leaky queue 1/s burst 4" is not allowed`)

	b.use(limiter.FixedWindow(6, time.Minute), limiter.TokenBucket(perSecond(1, 4)))
	_, err = b.l.AllowN(context.Background(), "k", 5)
	require.ErrorContains(t, err, "want 1 to 4")
}

func testChanges(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	t.Run("smaller", func(t *testing.T) {
		for _, rule := range []func(throttle.Limit) limiter.Rule{limiter.TokenBucket, limiter.LeakyBucket, limiter.LeakyQueue} {
			b := newBench(t, open(t), rule(perSecond(1, 1000)))
			b.allow("k", 1)
			b.use(rule(perSecond(1, 10)))
			r, err := b.l.Peek(context.Background(), "k")
			require.NoError(t, err)
			require.LessOrEqual(t, r.Remaining, int64(10))
			require.LessOrEqual(t, b.many(100), 10)
		}
	})
	t.Run("a lower burst", func(t *testing.T) {
		for _, rule := range []func(throttle.Limit) limiter.Rule{limiter.TokenBucket, limiter.LeakyBucket, limiter.LeakyQueue} {
			b := newBench(t, open(t), rule(perSecond(1, 60)))
			b.allow("k", 60)
			b.use(rule(perSecond(100, 10)))
			b.follow(100 * time.Millisecond)
		}
	})
	t.Run("longer windows", func(t *testing.T) {
		for _, rule := range []func(int64, time.Duration) limiter.Rule{limiter.FixedWindow, limiter.SlidingLog, limiter.SlidingCounter} {
			b := newBench(t, open(t), rule(5, time.Minute))
			b.at(30*time.Minute + 50*time.Second)
			require.Equal(t, 5, b.many(9))
			b.use(rule(5, time.Hour))
			r := b.allow("k", 1)
			require.False(t, r.Allowed)
			b.at(b.since + r.RetryAfter)
			require.True(t, b.allow("k", 1).Allowed)
		}
	})
	t.Run("a look changes nothing", func(t *testing.T) {
		b := newBench(t, open(t), limiter.FixedWindow(5, time.Hour))
		require.Equal(t, 5, b.many(9))
		b.use(limiter.SlidingLog(5, time.Hour))
		_, err := b.l.Peek(context.Background(), "k")
		require.NoError(t, err)
		b.use(limiter.FixedWindow(5, time.Hour))
		require.Zero(t, b.many(9))
	})
	t.Run("greater", func(t *testing.T) {
		for _, rule := range []func(int64, time.Duration) limiter.Rule{limiter.FixedWindow, limiter.SlidingLog, limiter.SlidingCounter} {
			b := newBench(t, open(t), rule(10, time.Hour))
			require.Equal(t, 10, b.many(50))
			b.use(rule(20, time.Hour))
			b.at(30 * time.Minute)
			require.Equal(t, 10, b.many(50))
		}
	})
	t.Run("the tokens stay", func(t *testing.T) {
		b := newBench(t, open(t), limiter.TokenBucket(perSecond(3, 10)))
		require.Equal(t, 10, b.many(20))
		b.at(500 * time.Millisecond)
		b.use(limiter.TokenBucket(perSecond(7, 20)))
		// 1.5 tokens came back; of the new rate, the half is 71.4 ms ago at the most.
		require.LessOrEqual(t, b.many(20), 4)
		require.LessOrEqual(t, b.allow("k", 1).RetryAfter, 143*time.Millisecond)
	})
	t.Run("other windows", func(t *testing.T) {
		for _, rule := range []func(int64, time.Duration) limiter.Rule{limiter.FixedWindow, limiter.SlidingLog, limiter.SlidingCounter} {
			b := newBench(t, open(t), rule(10, time.Minute))
			b.at(90 * time.Second)
			require.Equal(t, 10, b.many(50))
			b.use(rule(15, time.Hour))
			require.LessOrEqual(t, b.many(50), 15)
			b.use(rule(10, time.Second))
			b.at(95 * time.Second)
			require.Equal(t, 10, b.many(50))
		}
	})
	t.Run("another algorithm", func(t *testing.T) {
		rules := rulesOf(10, time.Minute, 10)
		for i, rule := range rules {
			for j, other := range rules {
				if i == j {
					continue
				}
				b := newBench(t, open(t), rule)
				require.Equal(t, 10, b.many(20))
				b.use(other)
				require.LessOrEqual(t, b.many(20), 10, "%v after %v", other, rule)
				require.False(t, b.allow("k", 1).Allowed)
			}
		}
	})
}

// testClock steps the clock of the store.
func testClock(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, rule := range rulesOf(10, time.Second, 5) {
		t.Run(rule.Algorithm().String(), func(t *testing.T) {
			b := newBench(t, open(t), rule)
			b.at(2 * time.Hour)
			first := b.many(20)
			b.at(time.Hour)
			r := b.allow("k", 1)
			require.LessOrEqual(t, r.RetryAfter, time.Second, "one window, or one full refill, at most")
			if b.l.Rules()[0].Algorithm() >= limiter.TokenBucketAlgorithm {
				require.LessOrEqual(t, r.RetryAfter, 500*time.Millisecond)
			}
			require.Equal(t, time.Hour, b.since)
			b.follow(time.Second)
			require.LessOrEqual(t, b.greedy(time.Hour+10*time.Second), 105)

			b.at(48 * time.Hour)
			require.LessOrEqual(t, b.many(20), max(first, 5), "a jump ahead gives one burst, or window")
		})
		t.Run(rule.Algorithm().String()+", reserved", func(t *testing.T) {
			b := newBench(t, open(t), rule)
			b.at(2 * time.Hour)
			for range 40 {
				_, err := b.l.Reserve(context.Background(), "k", 1, limiter.Forever)
				require.NoError(t, err)
			}
			before, err := b.l.Peek(context.Background(), "k")
			require.NoError(t, err)
			b.at(time.Hour)
			after, err := b.l.Peek(context.Background(), "k")
			require.NoError(t, err)
			require.InDelta(t, before.RetryAfter, after.RetryAfter, float64(time.Second), "what is reserved moves along")
			b.follow(5 * time.Second)
			require.LessOrEqual(t, b.greedy(time.Hour+20*time.Second), 205-35)
		})
	}
}
