package throttletest_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

var anyLimit = rapid.Custom(func(t *rapid.T) throttle.Limit {
	return throttle.Limit{
		Rate:   rapid.Int64Range(1, 50).Draw(t, "rate"),
		Period: time.Duration(rapid.Int64Range(1, 3000).Draw(t, "period")) * ms,
		Burst:  rapid.Int64Range(1, 12).Draw(t, "burst"),
	}
})

// excessByHand looks at each pair of instants and adds up what lies between.
func excessByHand(l throttle.Limit, events []throttletest.Event) float64 {
	worst := math.Inf(-1)
	for _, from := range events {
		for _, to := range events {
			if to.At.Before(from.At) {
				continue
			}
			var cost int64
			closing := throttletest.Event{}
			for _, e := range events {
				if e.At.Before(from.At) || e.At.After(to.At) {
					continue
				}
				cost += e.Cost
				if !e.At.Before(closing.At) {
					closing = e
				}
			}
			allowed := float64(l.Burst) + to.At.Sub(from.At).Seconds()*float64(l.Rate)/l.Period.Seconds()
			worst = max(worst, float64(cost-max(0, closing.Cost-l.Burst))-allowed)
		}
	}
	return worst
}

func TestExcessIsThatOfTheWorstOfAllWindows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := anyLimit.Draw(rt, "limit")
		// Few instants, so that many events share one, in no order.
		events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) throttletest.Event {
			return throttletest.Event{
				Key:  "k",
				At:   noon.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "at")) * 25 * ms),
				Cost: rapid.Int64Range(1, 15).Draw(t, "cost"),
			}
		}), 1, 30).Draw(rt, "events")

		reports, err := throttletest.Measure(map[string]throttle.Limit{"k": l}, events, nil)
		require.NoError(rt, err)
		r, w := reports[0], reports[0].ExcessWindow
		require.InDelta(rt, excessByHand(l, events), r.Excess, 1e-6)

		var cost int64
		for _, e := range events {
			if !e.At.Before(w.From) && !e.At.After(w.To) {
				cost += e.Cost
			}
		}
		require.Equal(rt, cost, w.Cost, "the window that is shown holds what it says")
	})
}

// A run has no excess exactly when the bucket would have let every job leave.
func TestExcessAgreesWithTheBucket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := anyLimit.Draw(rt, "limit")
		b := throttle.Bucket{Limit: l, At: noon}
		now, broken := noon, 0.0
		var events []throttletest.Event
		for range rapid.IntRange(1, 40).Draw(rt, "jobs") {
			cost := rapid.Int64Range(1, 15).Draw(rt, "cost")
			now = now.Add(time.Duration(rapid.Int64Range(0, 2_000).Draw(rt, "idle")) * ms)
			wait := b.Wait(now, float64(cost))
			if rapid.IntRange(0, 9).Draw(rt, "jumps the line") > 0 {
				now = now.Add(wait)
			} else {
				broken = max(broken, wait.Seconds()*float64(l.Rate)/l.Period.Seconds())
			}
			b.Take(now, float64(cost))
			events = append(events, throttletest.Event{Key: "k", At: now, Cost: cost})
		}

		reports, err := throttletest.Measure(map[string]throttle.Limit{"k": l}, events, nil)
		require.NoError(rt, err)
		// The bucket rounds a wait up to the next microsecond.
		microsecond := 1e-6 * float64(l.Rate) / l.Period.Seconds()
		require.InDelta(rt, broken, max(0, reports[0].Excess), microsecond+1e-6)
	})
}
