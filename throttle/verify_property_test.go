package throttle

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawnLimit(t *rapid.T) Limit {
	return Limit{
		Rate:   rapid.SampledFrom([]int64{1, 3, 7, 10, 64, 999}).Draw(t, "rate"),
		Period: rapid.SampledFrom([]time.Duration{time.Second, 1234567 * time.Microsecond, time.Minute}).Draw(t, "period"),
		Burst:  rapid.SampledFrom([]int64{1, 2, 5, 20}).Draw(t, "burst"),
	}
}

// bucketLog is departures of a bucket that are as early as it allows, or later.
type bucketLog struct {
	logbook
	slots []time.Time
	costs []int64
	full  []int // those after which nothing more may leave at once
}

func drawBucketLog(t *rapid.T, l Limit, dearest int64) *bucketLog {
	b := Bucket{Limit: l, At: epoch}
	log := &bucketLog{logbook: logbook{t: t}}
	log.add("p %d %s", epoch.UnixMicro(), Policy{Key: "k", Limit: l}.text())
	now := epoch
	for i := range rapid.IntRange(1, 80).Draw(t, "jobs") {
		cost := rapid.Int64Range(1, dearest).Draw(t, "cost")
		if rapid.IntRange(0, 3).Draw(t, "idle") == 0 {
			now = now.Add(time.Duration(rapid.Int64Range(0, 10*l.Interval().Microseconds()).Draw(t, "µs")) * time.Microsecond)
		}
		now = now.Add(b.Wait(now, float64(cost)))
		b.Take(now, float64(cost))
		log.add("d %d %d 1 0 1 - %d k", now.UnixMicro(), cost, i)
		log.slots, log.costs = append(log.slots, now), append(log.costs, cost)
		if b.Level+1 > float64(l.Burst)+2*l.tolerance() {
			log.full = append(log.full, i)
		}
	}
	return log
}

// What a bucket lets leave breaks no window. One departure more where it is full does,
// and is found once, with the window that it is in.
func TestVerifyAgreesWithTheBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawnLimit(t)
		log := drawBucketLog(t, l, rapid.SampledFrom([]int64{1, 3, 30}).Draw(t, "dearest"))
		v := log.verify()
		require.Empty(t, said(v.Violations))
		require.Equal(t, len(log.slots), v.Departures)
		require.LessOrEqual(t, v.Pace, 1.0)
		if len(log.full) == 0 {
			return
		}
		at := log.slots[rapid.SampledFrom(log.full).Draw(t, "full")]
		log.add("d %d 1 1 0 1 - extra k", at.UnixMicro())
		v = log.verify()
		require.Len(t, v.Violations, 1)
		require.Equal(t, "rate", v.Violations[0].What)
		require.False(t, at.Before(v.Violations[0].From))
		require.False(t, at.After(v.Violations[0].To))
		require.Greater(t, v.Violations[0].Cost, v.Violations[0].Allowed)
	})
}

// A violation of the rate is told exactly where a window holds more than burst +
// rate×time, and the first that is told has the numbers of its window.
func TestVerifyAgreesWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawnLimit(t)
		log := &logbook{t: t}
		log.add("p %d %s", epoch.UnixMicro(), Policy{Key: "k", Limit: l}.text())
		var at []int64
		var costs []float64
		now := epoch.UnixMicro()
		for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
			now += rapid.Int64Range(0, 3*l.Interval().Microseconds()).Draw(t, "µs")
			cost := rapid.Int64Range(0, l.Burst).Draw(t, "cost")
			log.add("d %d %d 1 0 1 - %d k", now, cost, i)
			at, costs = append(at, now), append(costs, float64(cost))
		}
		worst := math.Inf(-1)
		for i := range at {
			var sum float64
			for j := i; j < len(at); j++ {
				sum += costs[j]
				worst = max(worst, sum-float64(l.Burst)-l.leaked(at[j]-at[i]))
			}
		}
		v := log.verify()
		if math.Abs(worst-l.tolerance()) < 1e-7 {
			return // too close to call
		}
		require.Equal(t, worst > l.tolerance(), !v.OK(), "worst excess %g: %v", worst, said(v.Violations))
		var worstTold float64
		for _, found := range v.Violations {
			var sum float64
			for i := range at {
				if at[i] >= found.From.UnixMicro() && at[i] <= found.To.UnixMicro() {
					sum += costs[i]
				}
			}
			worstTold = max(worstTold, found.Cost-found.Allowed)
			require.InDelta(t, float64(l.Burst)+l.leaked(found.To.Sub(found.From).Microseconds()), found.Allowed, l.tolerance())
			require.GreaterOrEqual(t, sum, found.Cost-l.tolerance(), "%v", found)
			require.Greater(t, found.Cost, found.Allowed)
		}
		require.LessOrEqual(t, worstTold, max(0, worst)+2*l.tolerance())
	})
}

// The same for sliding quotas, by looking at each window.
func TestVerifyOfQuotasAgreesWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Quota{Limit: rapid.Int64Range(1, 6).Draw(t, "limit"), Per: time.Second}
		log := &logbook{t: t}
		log.policy(0, "1000000000/s", MaxBurst, withQuota(q))
		var at, costs []int64
		now := epoch.UnixMicro()
		for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
			now += rapid.Int64Range(0, 20).Draw(t, "parts") * 50_000
			cost := rapid.Int64Range(0, q.Limit).Draw(t, "cost")
			log.add("d %d %d 1 0 1 - %d k", now, cost, i)
			at, costs = append(at, now), append(costs, cost)
		}
		var most int64
		for j := range at {
			var sum int64
			for i := j; i >= 0 && at[i] > at[j]-1_000_000; i-- {
				sum += costs[i]
			}
			most = max(most, sum)
		}
		v := log.verify()
		require.Equal(t, most > q.Limit, !v.OK())
		require.InDelta(t, float64(most), v.Quotas[0].Most, 0)
	})
}

// millionEntries are those of a key that is always busy.
func millionEntries(tb testing.TB) []string {
	tb.Helper()
	l := &logbook{t: tb}
	l.policy(0, "100/s", 10, withQuota(
		Quota{Limit: 1_000_000, Per: time.Hour}, Quota{Limit: 10_000_000, Per: day, Window: Fixed, Zone: "Europe/Berlin"},
	), withHours("Europe/Berlin", "mon-sun 00:00-24:00"))
	start := epoch.UnixMicro()
	for i := range 1_000_000 - 1 {
		l.entries = append(l.entries, "d "+strconv.FormatInt(start+int64(i)*10_000, 10)+" 1 1 0 1 - "+fmt.Sprintf("%012d", i)+" k")
	}
	return l.entries
}

func BenchmarkVerifyAMillion(b *testing.B) {
	entries := millionEntries(b)
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			_, err := parseHistory("k", entries)
			require.NoError(b, err)
		}
	})
	h, err := parseHistory("k", entries)
	require.NoError(b, err)
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			require.True(b, h.Verify().OK())
		}
	})
}
