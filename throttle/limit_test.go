package throttle_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestLimitBounds(t *testing.T) {
	good := throttle.Limit{Rate: 1, Period: time.Second, Burst: 1}
	require.NoError(t, good.Validate())
	for field, break_ := range map[string][]func(*throttle.Limit){
		"rate": {
			func(l *throttle.Limit) { l.Rate = 0 }, func(l *throttle.Limit) { l.Rate = -1 },
			func(l *throttle.Limit) { l.Rate = throttle.MaxRate + 1 }, func(l *throttle.Limit) { l.Rate = math.MinInt64 },
		},
		"period": {
			func(l *throttle.Limit) { l.Period = 0 }, func(l *throttle.Limit) { l.Period = -time.Second },
			func(l *throttle.Limit) { l.Period = throttle.MinPeriod - 1 }, func(l *throttle.Limit) { l.Period = throttle.MaxPeriod + time.Microsecond },
			func(l *throttle.Limit) { l.Period = time.Second + 1 },
		},
		"burst": {
			func(l *throttle.Limit) { l.Burst = 0 }, func(l *throttle.Limit) { l.Burst = -1 },
			func(l *throttle.Limit) { l.Burst = throttle.MaxBurst + 1 },
		},
	} {
		for _, b := range break_ {
			l := good
			b(&l)
			err := l.Validate()
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.True(t, strings.HasPrefix(err.Error(), field+" "), "%v: want field %s", err, field)
			require.Contains(t, err.Error(), "want ")
		}
	}
	_, err := throttle.ParseLimit("1/s", 0)
	require.ErrorIs(t, err, throttle.ErrInvalid)
}

// From an idle bucket burst jobs leave at once, and the next one interval later,
// whatever the burst.
func TestBucketWaits(t *testing.T) {
	type step struct {
		us   int64
		cost float64
		wait time.Duration
	}
	for name, c := range map[string]struct {
		rate  string
		burst int64
		steps []step
	}{
		"burst of one": {"5/s", 1, []step{{0, 1, 0}, {0, 1, 200 * time.Millisecond}}},
		"burst of five": {"1/s", 5, []step{
			{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, time.Second}, {1_000_000, 1, 0},
		}},
		"interval below a millisecond": {"2000/s", 1, []step{{0, 1, 0}, {500, 1, 0}, {1000, 1, 0}, {1200, 1, 300 * time.Microsecond}}},
		"one a day":                    {"1/d", 1, []step{{0, 1, 0}, {86_399_000_000, 1, time.Second}}},
		"cost above the burst leaves from an empty bucket, into debt": {"1/s", 5, []step{{0, 6, 0}, {0, 1, 2 * time.Second}}},
		"credit ends at the burst":                                    {"1/s", 2, []step{{0, 1, 0}, {3_600_000_000, 1, 0}, {3_600_000_000, 1, 0}, {3_600_000_000, 1, time.Second}}},
		"a clock that steps back leaks nothing and locks nobody out":  {"10/s", 1, []step{{3_600_000_000, 1, 0}, {0, 1, 100 * time.Millisecond}}},
	} {
		t.Run(name, func(t *testing.T) {
			n, per, err := throttle.ParseRate(c.rate)
			require.NoError(t, err)
			b := throttle.Bucket{Limit: throttle.Limit{Rate: n, Period: per, Burst: c.burst}}
			for i, s := range c.steps {
				require.Equal(t, s.wait, b.Wait(time.UnixMicro(s.us), s.cost), "step %d", i)
				b.Take(time.UnixMicro(s.us), s.cost)
				if s.wait > 0 { // it was told to wait: that charge is not part of the table
					b.Level -= s.cost
				}
			}
		})
	}
}

// A caller that sleeps what it was told, rounded up to whole microseconds, gets
// its rate over hours: rounding does not add up.
func TestRoundingDoesNotAddUp(t *testing.T) {
	b := throttle.Bucket{Limit: throttle.Limit{Rate: 3, Period: time.Second, Burst: 1}}
	now, end := time.UnixMicro(0), time.UnixMicro(0).Add(time.Hour)
	calls := 0
	for !now.After(end) {
		wait := b.Wait(now, 1)
		if wait == 0 {
			b.Take(now, 1)
			calls++
			wait = b.Wait(now, 1)
		}
		now = now.Add(wait)
	}
	require.InDelta(t, 10_800, calls, 1)
}
