package limitertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// anyLimit draws limits from one in two years to a thousand million a millisecond, most of
// them with rates that are no whole number of µs.
func anyLimit(rt *rapid.T) throttle.Limit {
	for {
		l := throttle.Limit{
			Rate:   rapid.OneOf(rapid.Int64Range(1, 12), rapid.Int64Range(1, throttle.MaxRate)).Draw(rt, "rate"),
			Period: time.Duration(rapid.OneOf(rapid.Int64Range(1000, 1_000_000), rapid.Int64Range(1000, throttle.MaxPeriod.Microseconds())).Draw(rt, "period")) * time.Microsecond,
			Burst:  rapid.OneOf(rapid.Int64Range(1, 12), rapid.Int64Range(1, throttle.MaxBurst)).Draw(rt, "burst"),
		}
		if limiter.TokenBucket(l).Validate() == nil {
			return l
		}
	}
}

func anyRule(rt *rapid.T) limiter.Rule {
	l := anyLimit(rt)
	switch a := rapid.SampledFrom([]limiter.Algorithm{
		limiter.FixedWindowAlgorithm, limiter.SlidingLogAlgorithm, limiter.SlidingCounterAlgorithm,
		limiter.TokenBucketAlgorithm, limiter.LeakyBucketAlgorithm, limiter.LeakyQueueAlgorithm,
	}).Draw(rt, "algorithm"); a {
	case limiter.FixedWindowAlgorithm:
		return limiter.FixedWindow(l.Rate, l.Period)
	case limiter.SlidingLogAlgorithm:
		return limiter.SlidingLog(min(l.Rate, 50), l.Period)
	case limiter.SlidingCounterAlgorithm:
		return limiter.SlidingCounter(l.Rate, l.Period)
	case limiter.TokenBucketAlgorithm:
		return limiter.TokenBucket(l)
	case limiter.LeakyBucketAlgorithm:
		return limiter.LeakyBucket(l)
	default:
		return limiter.LeakyQueue(l)
	}
}

// A caller asks at instants, and for costs, that matter.
type caller struct {
	rt    *rapid.T
	rule  limiter.Rule
	retry time.Duration // of the last answer
	reset time.Duration
}

func (c *caller) pause() time.Duration {
	l := c.rule.Limit()
	interval := max(l.Period.Microseconds()/l.Rate, 1)
	return max(0, rapid.OneOf(
		rapid.Just(time.Duration(0)), rapid.Just(c.retry), rapid.Just(c.retry-us), rapid.Just(c.reset), rapid.Just(c.reset-us),
		rapid.Map(rapid.Int64Range(0, 3*interval), func(n int64) time.Duration { return time.Duration(n) * us }),
		rapid.Map(rapid.Int64Range(0, l.Period.Microseconds()), func(n int64) time.Duration { return time.Duration(n) * us }),
	).Draw(c.rt, "pause"))
}

func (c *caller) cost() int64 {
	most := c.rule.Limit().Burst
	return rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, min(most, 5)), rapid.Int64Range(1, most)).Draw(c.rt, "cost")
}

// testModel compares all that is answered with what the algorithms mean.
func testModel(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	s := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		rule := anyRule(rt)
		b := newBench(rt, s, rule)
		model, key := newModel(rule), fmt.Sprintf("model-%d", n)
		c := caller{rt: rt, rule: rule}
		for range rapid.IntRange(1, s.fewer(30)).Draw(rt, "calls") {
			b.at(b.since + c.pause())
			cost := c.cost()
			got := b.allow(key, cost)
			require.Equal(rt, answer(model, rule, Epoch.Add(b.since).UnixMicro(), cost), got, "%v at %v, cost %d", rule, b.since, cost)
			c.retry, c.reset = got.RetryAfter, got.ResetAfter
		}
		require.NoError(rt, b.l.Reset(context.Background(), key))
	})
}

// queues tells a rule that must be alone.
func queues(r limiter.Rule) bool { return r.Algorithm() == limiter.LeakyQueueAlgorithm }

// A passage is what went, and when, µs.
type passage struct{ at, cost int64 }

// testWindows has calls, reservations and cancelled ones mixed, and looks at every
// window of what went.
func testWindows(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	s := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		rules := []limiter.Rule{anyRule(rt)}
		if second := anyRule(rt); !slices.ContainsFunc(append(rules, second), queues) && rapid.Bool().Draw(rt, "two") {
			rules = append(rules, second)
		}
		b := newBench(rt, s, rules...)
		key, c := fmt.Sprintf("windows-%d", n), caller{rt: rt, rule: rules[0]}
		most := min(rules[0].Limit().Burst, rules[len(rules)-1].Limit().Burst)
		var went []passage
		var ahead []*limiter.Reservation
		at := map[*limiter.Reservation]passage{}
		for range rapid.IntRange(1, s.fewer(40)).Draw(rt, "calls") {
			b.at(b.since + c.pause())
			now := Epoch.Add(b.since)
			cost := min(most, c.cost())
			switch rapid.SampledFrom([]string{"allow", "reserve", "reserve", "cancel"}).Draw(rt, "what") {
			case "allow":
				r := b.allow(key, cost)
				c.retry, c.reset = r.RetryAfter, r.ResetAfter
				if r.Allowed {
					went = append(went, passage{now.Add(r.Delay).UnixMicro(), cost})
				}
			case "reserve":
				r, err := b.l.Reserve(context.Background(), key, cost, limiter.Forever)
				require.NoError(rt, err)
				require.True(rt, r.Allowed)
				c.retry = r.Delay
				ahead, at[r] = append(ahead, r), passage{now.Add(r.Delay).UnixMicro(), cost}
			case "cancel":
				if len(ahead) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(ahead)-1).Draw(rt, "which")
				r := ahead[i]
				if at[r].at <= now.UnixMicro() {
					continue // it went
				}
				require.NoError(rt, r.Cancel(context.Background()))
				ahead = slices.Delete(ahead, i, i+1)
				delete(at, r)
			}
		}
		for _, p := range at {
			went = append(went, p)
		}
		slices.SortFunc(went, func(a, b passage) int { return int(min(1, max(-1, a.at-b.at))) })
		for _, r := range rules {
			requireWithin(rt, r, went)
		}
		require.NoError(rt, b.l.Reset(context.Background(), key))
	})
}

// requireWithin looks at each window that begins and ends with something that went.
func requireWithin(t require.TestingT, r limiter.Rule, went []passage) {
	l := r.Limit()
	for i := range went {
		sum := int64(0)
		for _, p := range went[i:] {
			sum += p.cost
			span := p.at - went[i].at
			switch r.Algorithm() {
			case limiter.FixedWindowAlgorithm:
				if per := l.Period.Microseconds(); went[i].at/per == p.at/per {
					require.LessOrEqual(t, sum, l.Rate, "%v: from %d to %d", r, went[i].at, p.at)
				}
			case limiter.SlidingLogAlgorithm:
				if span < l.Period.Microseconds() {
					require.LessOrEqual(t, sum, l.Rate, "%v: from %d to %d", r, went[i].at, p.at)
				}
			case limiter.SlidingCounterAlgorithm: // within its documented error
				if span < l.Period.Microseconds() {
					require.Less(t, sum, 2*l.Rate, "%v: from %d to %d", r, went[i].at, p.at)
				}
			default:
				// A slot is a whole µs, but where it truly is may be up to one before that.
				came := floor(ratOf(l.Rate, span+1, l.Period.Microseconds()))
				require.LessOrEqual(t, sum, l.Burst+came, "%v: from %d to %d", r, went[i].at, p.at)
			}
		}
	}
}
