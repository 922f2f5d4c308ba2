package throttletest_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func TestTimelinesThatKeepTheirLimit(t *testing.T) {
	tight := throttletest.Bounds{MinRatio: 0.9999, MaxRatio: 1.0001, MaxGapP99: time.Microsecond, Ordered: true}
	paceOnly := throttletest.Bounds{Ordered: true}

	for name, c := range map[string]struct {
		rate   string
		burst  int64
		events timeline
		bounds throttletest.Bounds
		ratio  float64
		excess float64
	}{
		"exact schedule":           {"100/s", 1, timeline{}.every(0, 10*ms, 2000), tight, 1, 0},
		"interval of no whole ns":  {"3/s", 1, timeline{}.every(0, 333_333_334, 100), tight, 1, 0},
		"slower than a second":     {"1/24h", 1, timeline{}.every(0, 24*time.Hour, 30), tight, 1, 0},
		"burst, then rate":         {"10/s", 20, timeline{}.at(0, 20, 1).every(100*ms, 100*ms, 50), tight, 1, 0},
		"within the burst":         {"10/s", 20, timeline{}.at(0, 20, 1), tight, 1, 0},
		"one event":                {"10/s", 1, timeline{}.at(0, 1, 1), tight, 1, 0},
		"burst not used up":        {"10/s", 20, timeline{}.at(0, 5, 1), tight, 1, -15},
		"no cost given is cost 1":  {"10/s", 2, timeline{}.at(0, 2, 0).at(100*ms, 1, 0), tight, 1, 0},
		"costs above 1":            {"10/s", 5, timeline{}.at(0, 1, 5).at(300*ms, 1, 3).at(400*ms, 1, 1).at(800*ms, 1, 4), tight, 1, 0},
		"dearer than the burst":    {"1/s", 5, timeline{}.at(0, 1, 6).at(2*time.Second, 1, 1), tight, 1, 0},
		"debt upon debt":           {"1/s", 5, timeline{}.at(0, 1, 8).at(8*time.Second, 1, 8).at(12*time.Second, 1, 1), tight, 1, 0},
		"burst, idle, burst":       {"10/s", 20, timeline{}.at(0, 20, 1).at(10*time.Second, 20, 1).every(10*time.Second+100*ms, 100*ms, 5), paceOnly, 2.5 / 10.5, 0},
		"burst grown back in part": {"10/s", 20, timeline{}.at(0, 20, 1).at(time.Second, 10, 1), paceOnly, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := measure(t, limit(t, c.rate, c.burst), c.events, c.events.ids())
			require.NoError(t, r.Check(c.bounds))
			require.InDelta(t, c.ratio, r.Ratio, 1e-6)
			require.InDelta(t, c.excess, r.Excess, 1e-6)
		})
	}
}

func TestTimelinesThatBreakABound(t *testing.T) {
	steady := timeline{}.every(0, 100*ms, 20)
	bounds := throttletest.Bounds{MinRatio: 0.995, MaxRatio: 1.005, MaxExcess: 0.5, MaxGapP99: 5 * ms, Ordered: true}

	swapped := append(timeline{}, steady...)
	swapped[3].ID, swapped[4].ID = swapped[4].ID, swapped[3].ID
	twice := append(timeline{}, steady...)
	twice[7].ID = "6"
	foreign := append(timeline{}, steady...)
	foreign[19].ID = "stranger"

	for name, c := range map[string]struct {
		rate     string
		burst    int64
		events   timeline
		expected []string
		want     []string
	}{
		"twice the limit around the edge of a fixed window": {
			"60/m", 60, timeline{}.at(59900*ms, 60, 1).at(60100*ms, 60, 1), nil,
			[]string{"excess 59.8 is above max_excess 0.5 (cost 120 from 0s to 200ms after the first)", "ratio 300 is above max_ratio 1.005"},
		},
		"fixed windows that give their limit at each edge": {
			"100/s", 1, timeline{}.at(0, 100, 1).at(time.Second, 100, 1).at(2*time.Second, 100, 1), nil,
			[]string{"excess 99 is above", "gap_p99 10ms is above max_gap_p99 5ms"},
		},
		"a catch-up burst after a stall": {
			"10/s", 1, timeline{}.every(0, 100*ms, 11).at(4*time.Second, 30, 1).every(4100*ms, 100*ms, 20), nil,
			[]string{"excess 29 is above max_excess 0.5 (cost 30 from 4s to 4s after the first)", "gap_p99 2.9s is above"},
		},
		"a catch-up burst spread over a little time": {
			"10/s", 1, timeline{}.every(0, 100*ms, 11).every(3*time.Second, ms, 20).every(3100*ms, 100*ms, 20), nil,
			[]string{"excess 19 is above max_excess 0.5 (cost 21 from 3s to 3.1s after the first)", "gap_p99"},
		},
		"one job too many in a burst": {
			"10/s", 20, timeline{}.at(0, 21, 1), nil,
			[]string{"excess 1 is above max_excess 0.5 (cost 21 from 0s to 0s after the first)"},
		},
		"one job too many after a burst": {
			"10/s", 20, timeline{}.at(0, 20, 1).at(30*ms, 1, 1).every(100*ms, 100*ms, 40), nil,
			[]string{"excess 1 is above max_excess 0.5 (cost 22 from 0s to 100ms after the first)"},
		},
		"a burst that is given twice": {
			"10/s", 20, timeline{}.at(0, 20, 1).at(time.Second, 20, 1), nil,
			[]string{"excess 10 is above"},
		},
		"a dear job that does not wait for an empty bucket": {
			"1/s", 5, timeline{}.at(0, 1, 1).at(0, 1, 6), nil,
			[]string{"excess 1 is above max_excess 0.5 (cost 7 from 0s to 0s after the first)"},
		},
		"a debt that is not paid back": {
			"1/s", 5, timeline{}.at(0, 1, 8).at(time.Second, 1, 1), nil,
			[]string{"excess 3 is above max_excess 0.5 (cost 9 from 0s to 1s after the first)"},
		},
		"a slow run": {
			"10/s", 1, timeline{}.every(0, 111*ms, 100), nil,
			[]string{"ratio 0.900901 is below min_ratio 0.995", "gap_p99 11ms is above max_gap_p99 5ms"},
		},
		"a slow run after a burst": {
			"10/s", 10, timeline{}.at(0, 10, 1).every(200*ms, 200*ms, 10), nil,
			[]string{"ratio 0.5 is below min_ratio 0.995"},
		},
		"a fast run": {
			"10/s", 1, timeline{}.every(0, 99*ms, 101), nil,
			[]string{"ratio 1.0101 is above max_ratio 1.005", "excess 1 is above"},
		},
		"one gap in fifty off":     {"10/s", 1, timeline{}.every(0, 100*ms, 25).every(2510*ms, 100*ms, 25), nil, []string{"gap_p99 10ms is above max_gap_p99 5ms"}},
		"nothing came":             {"10/s", 1, nil, []string{"0", "1"}, []string{"ratio 0 is below min_ratio 0.995", "lost 2 (0, 1), allowed 0"}},
		"the first is lost":        {"10/s", 1, steady[1:], steady.ids(), []string{"lost 1 (0), allowed 0"}},
		"the last is lost":         {"10/s", 1, steady[:19], steady.ids(), []string{"lost 1 (19), allowed 0"}},
		"many are lost":            {"10/s", 1, steady[:2], steady.ids(), []string{"lost 18 (2, 3, 4, 5, 6 and 13 more), allowed 0"}},
		"two change places":        {"10/s", 1, swapped, steady.ids(), []string{"out_of_order 1, allowed 0"}},
		"one comes twice":          {"10/s", 1, twice, steady.ids(), []string{"lost 1 (7), allowed 0", "duplicated 1 (6), allowed 0"}},
		"one comes twice, unasked": {"10/s", 1, twice, nil, []string{"duplicated 1 (6), allowed 0", "order is unknown"}},
		"nobody sent it":           {"10/s", 1, foreign, steady.ids(), []string{"lost 1 (19), allowed 0", "unknown 1 (stranger), allowed 0"}},
		"nothing was expected":     {"10/s", 1, steady[:1], []string{}, []string{"unknown 1 (0), allowed 0"}},
		"an event without an id":   {"10/s", 1, timeline{{Key: "k", At: noon}}, []string{"0"}, []string{"lost 1 (0)", "unknown 1 (), allowed 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			expected := c.expected
			b := bounds
			if expected == nil {
				b.Ordered = name == "one comes twice, unasked"
			}
			err := measure(t, limit(t, c.rate, c.burst), c.events, expected).Check(b)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.ErrorContains(t, err, `key "k", `+c.rate)
		})
	}
}

func TestCheckAllowsWhatTheBoundsAllow(t *testing.T) {
	events := timeline{}.at(0, 3, 1)
	events[2].ID = "0"
	events[0], events[1] = events[1], events[0]
	r := measure(t, limit(t, "1/s", 1), events, []string{"0", "1"})

	require.Error(t, r.Check(throttletest.Bounds{MaxExcess: 2}), "a duplicate")
	require.NoError(t, r.Check(throttletest.Bounds{MaxExcess: 2, AllowDuplicates: true}))
	require.NoError(t, r.Check(throttletest.Bounds{MaxExcess: math.Inf(1), AllowDuplicates: true}))
	require.Error(t, r.Check(throttletest.Bounds{MaxExcess: 1.999, AllowDuplicates: true}))
	require.Error(t, r.Check(throttletest.Bounds{MaxExcess: 2, AllowDuplicates: true, Ordered: true}))
}

func TestOrderIsThatOfFirstAppearance(t *testing.T) {
	expected := []string{"a", "b", "c", "d"}
	for name, c := range map[string]struct {
		seen       []string
		outOfOrder int
		duplicated []string
	}{
		"in order":                {[]string{"a", "b", "c", "d"}, 0, nil},
		"a duplicate comes late":  {[]string{"a", "b", "a", "c", "d", "a"}, 0, []string{"a"}},
		"the last jumps the line": {[]string{"d", "a", "b", "c"}, 3, nil},
		"the first falls behind":  {[]string{"b", "c", "d", "a"}, 1, nil},
		"one is missing":          {[]string{"a", "c", "d"}, 0, nil},
		"a stranger in between":   {[]string{"a", "x", "b", "x", "c", "d"}, 0, []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var events timeline
			for _, id := range c.seen {
				events = append(events, throttletest.Event{Key: "k", ID: id, At: noon})
			}
			r := measure(t, limit(t, "1/s", 100), events, expected)
			require.Equal(t, c.outOfOrder, r.OutOfOrder)
			require.Equal(t, c.duplicated, r.Duplicated)
		})
	}
}

func TestPaceIsMeasuredInTheOrderOfTime(t *testing.T) {
	late := timeline{}.every(0, 10*ms, 100)
	late[40], late[41] = late[41], late[40]

	r := measure(t, limit(t, "100/s", 1), late, nil)
	require.NoError(t, r.Check(throttletest.Bounds{MinRatio: 1, MaxRatio: 1, MaxGapP99: 1}))
	require.Equal(t, 990*ms, r.Span)
	require.Equal(t, noon, r.From)
	require.Equal(t, 99, r.Gaps)
}

func TestGapErrorsAreThoseOfThePacedPart(t *testing.T) {
	// The 9 ms inside the burst are nobody's business. Of the 100 gaps after it,
	// one is 7 ms long instead of 10, and one 30 ms.
	events := timeline{}.at(0, 1, 1).at(9*ms, 4, 1).
		every(17*ms, 10*ms, 49).every(504*ms, 10*ms, 1).every(534*ms, 10*ms, 50)
	r := measure(t, limit(t, "100/s", 5), events, nil)
	require.Equal(t, 100, r.Gaps)
	require.Equal(t, time.Duration(0), r.GapP50)
	require.Equal(t, 3*ms, r.GapP99)
	require.Equal(t, 20*ms, r.GapMax)
}

func TestFiguresStayFinite(t *testing.T) {
	slowest := throttle.Limit{Rate: 1, Period: throttle.MaxPeriod, Burst: 1}
	r := measure(t, slowest, timeline{}.at(0, 3, throttle.MaxCost), nil)
	require.False(t, math.IsInf(r.Ratio, 0) || math.IsNaN(r.Ratio))
	require.InEpsilon(t, 2e9, r.Excess, 1e-6)
	_, err := json.Marshal(r)
	require.NoError(t, err)
	require.Error(t, r.Check(throttletest.Bounds{MaxRatio: 1e9}))
}

func TestMeasureRefusesInputItCannotJudge(t *testing.T) {
	ok := map[string]throttle.Limit{"k": {Rate: 1, Period: time.Second, Burst: 1}}
	event := throttletest.Event{Key: "k", ID: "0", At: noon}
	for name, c := range map[string]struct {
		limits   map[string]throttle.Limit
		event    throttletest.Event
		expected map[string][]string
		want     string
	}{
		"no limit for an event":  {ok, throttletest.Event{Key: "other", At: noon}, nil, `events[0].key "other" is not allowed: want a key that has a limit`},
		"no limit for a line":    {ok, event, map[string][]string{"other": {"0"}}, `expected "other" is not allowed`},
		"negative cost":          {ok, throttletest.Event{Key: "k", At: noon, Cost: -1}, nil, `events[0].cost -1 is not allowed`},
		"no instant":             {ok, throttletest.Event{Key: "k"}, nil, `events[0].at`},
		"rate of 0":              {map[string]throttle.Limit{"k": {Period: time.Second, Burst: 1}}, event, nil, `limits["k"]: rate 0 is not allowed`},
		"expected twice":         {ok, event, map[string][]string{"k": {"0", "1", "0"}}, `expected["k"][2] "0" is not allowed`},
		"expected without an id": {ok, event, map[string][]string{"k": {""}}, `expected["k"][0] "" is not allowed`},
	} {
		t.Run(name, func(t *testing.T) {
			reports, err := throttletest.Measure(c.limits, []throttletest.Event{c.event}, c.expected)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.Nil(t, reports)
		})
	}
}
