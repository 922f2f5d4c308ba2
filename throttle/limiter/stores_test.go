package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/throttletest/limitertest"
)

// Both stores decide alike, whatever is called. They may differ where the clock steps back, or the rules change, within a
// millisecond of the end of what is stored: then a server has let go of it, or not yet.
func TestStoresDecideAlike(t *testing.T) {
	onServer, inMemory := drivenRedis(t)(t), drivenMemory(t)
	ctx := context.Background()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		name, now := fmt.Sprint("alike-", n), limitertest.Epoch
		var pair [2]*limiter.Limiter
		use := func() {
			rules := rapid.SliceOfN(rapid.Custom(drawRule), 1, 3).Draw(rt, "rules")
			for i, s := range []limitertest.Store{onServer, inMemory} {
				l, err := limiter.New(s.Store, name, rules...)
				require.NoError(rt, err)
				pair[i] = l
			}
		}
		move := func(by time.Duration) {
			now = now.Add(by)
			onServer.Set(now)
			inMemory.Set(now)
		}
		move(0)
		use()
		var held [][2]*limiter.Reservation
		var last time.Duration
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			var got [2]limiter.Result
			cost := rapid.Int64Range(1, 3).Draw(rt, "cost")
			var what string
			switch what = rapid.SampledFrom([]string{"allow", "allow", "peek", "reserve", "cancel", "pause", "pause", "retry"}).Draw(rt, "what"); what {
			case "pause":
				move(time.Duration(rapid.Int64Range(0, 3_000_000).Draw(rt, "µs")) * time.Microsecond)
			case "retry":
				move(min(last, time.Hour))
			case "cancel":
				if len(held) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(held)-1).Draw(rt, "which")
				for _, r := range held[i] {
					require.NoError(rt, r.Cancel(ctx))
				}
				held = append(held[:i], held[i+1:]...)
			}
			for i, l := range pair {
				var err error
				switch what {
				case "allow":
					got[i], err = l.AllowN(ctx, "k", cost)
				case "reserve":
					if i == 0 {
						held = append(held, [2]*limiter.Reservation{})
					}
					r, e := l.Reserve(ctx, "k", cost, 10*time.Second)
					held[len(held)-1][i], err = r, e
					got[i] = r.Result
				default:
					got[i], err = l.PeekN(ctx, "k", cost)
				}
				require.NoError(rt, err)
			}
			require.Equal(rt, got[1], got[0], "%s at %v", what, now)
			last = got[0].RetryAfter
		}
		require.NoError(rt, pair[0].Reset(ctx, "k"))
		require.NoError(rt, pair[1].Reset(ctx, "k"))
	})
}

// drawRule draws a rule that a cost of 3 may pass, and that several may be of.
func drawRule(rt *rapid.T) limiter.Rule {
	n := rapid.Int64Range(3, 9).Draw(rt, "n")
	per := time.Duration(rapid.SampledFrom([]int64{1_000_000, 700_001, 2_000_000}).Draw(rt, "per")) * time.Microsecond
	l := throttle.Limit{Rate: n, Period: per, Burst: rapid.Int64Range(3, 12).Draw(rt, "burst")}
	return rapid.SampledFrom([]limiter.Rule{
		limiter.FixedWindow(n, per), limiter.SlidingLog(n, per), limiter.SlidingCounter(n, per), limiter.TokenBucket(l), limiter.LeakyBucket(l),
	}).Draw(rt, "rule")
}
