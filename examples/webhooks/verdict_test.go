package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// A timeline is a made-up run of one key, 10/s burst 2.
type timeline struct {
	destination
	start    time.Time
	arrivals []arrival
}

func newTimeline(events int) *timeline {
	l := &timeline{
		destination: newDestination("k", throttle.Limit{Rate: 10, Period: time.Second, Burst: 2}),
		start:       time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC),
	}
	for n := range events {
		l.add(fmt.Sprint(n), nil)
	}
	return l
}

func (l *timeline) call(id int, at time.Duration, change ...func(*arrival)) {
	a := arrival{hook: hook{l.key, fmt.Sprint(id)}, at: l.start.Add(at), attempt: 1, accepted: true, intact: true}
	for _, c := range change {
		c(&a)
	}
	l.arrivals = append(l.arrivals, a)
	slices.SortStableFunc(l.arrivals, func(a, b arrival) int { return a.at.Compare(b.at) })
}

// paced calls ids first to last at the limit's own pace, stretched.
func (l *timeline) paced(first, last int, stretch float64) {
	for n := first; n <= last; n++ {
		l.call(n, time.Duration(float64(max(0, n-1))*stretch*float64(100*time.Millisecond)))
	}
}

func refused(a *arrival)  { a.accepted = false }
func retry(a *arrival)    { a.attempt = 2 }
func again(a *arrival)    { a.attempt, a.again = 3, true }
func changed(a *arrival)  { a.intact = false }
func stranger(a *arrival) { a.attempt, a.accepted, a.intact = 0, false, false }

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name   string
		events int
		run    func(*timeline)
		broken []string // what they contain, in their order
	}{
		{"kept", 30, func(l *timeline) { l.paced(0, 29, 1) }, nil},
		{"retries in the backlog", 29, func(l *timeline) {
			l.paced(0, 9, 1)
			l.arrivals[3].accepted = false
			l.call(3, 900*time.Millisecond, retry)
			for n := 10; n < 29; n++ {
				l.call(n, time.Duration(n)*100*time.Millisecond)
			}
		}, nil},
		{"a retry alone at the end", 30, func(l *timeline) {
			l.paced(0, 29, 1)
			l.arrivals[29].accepted = false
			l.call(29, 10*time.Second, retry)
		}, nil},
		{"retries alone at the end above the limit", 30, func(l *timeline) {
			l.paced(0, 29, 1)
			for n := 20; n < 25; n++ {
				l.arrivals[n].accepted = false
				l.call(n, 2850*time.Millisecond, retry)
			}
		}, []string{"excess 4.5 is above max_excess 1"}},
		{"a burst in the middle", 30, func(l *timeline) {
			l.paced(0, 26, 1)
			for n := 27; n < 30; n++ {
				l.call(n, 2510*time.Millisecond)
			}
		}, []string{"excess 2.9 is above", "ratio 1.11554 is above"}},
		{"slow", 30, func(l *timeline) { l.paced(0, 29, 1.1) }, []string{"ratio 0.909091 is below min_ratio 0.95"}},
		{"slow in a short span", 9, func(l *timeline) { l.paced(0, 8, 1.2) }, nil},
		{"fast", 60, func(l *timeline) { l.paced(0, 59, 0.9) }, []string{"excess", "ratio 1.11111 is above max_ratio 1.05"}},
		{"lost", 30, func(l *timeline) { l.paced(0, 28, 1) }, []string{`key "k": 1 lost, allowed 0`}},
		{"refused for ever", 30, func(l *timeline) {
			l.paced(0, 29, 1)
			l.arrivals[7].accepted = false
		}, []string{`key "k": 1 lost`}},
		{"all lost", 30, func(*timeline) {}, []string{`key "k": 30 lost`}},
		{"duplicated", 30, func(l *timeline) {
			l.paced(0, 29, 1)
			l.call(29, 10*time.Second, again)
		}, []string{`key "k": 1 duplicated, allowed 0`}},
		{"damaged", 30, func(l *timeline) {
			l.paced(0, 28, 1)
			l.call(29, 2800*time.Millisecond, changed)
		}, []string{`key "k": 1 damaged, allowed 0`}},
		{"from nobody", 30, func(l *timeline) {
			l.paced(0, 29, 1)
			l.call(77, time.Second, stranger)
		}, []string{"1 calls for events that nobody sent"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newTimeline(c.events)
			c.run(l)
			v, err := judge([]destination{l.destination}, l.arrivals)
			require.NoError(t, err)
			require.Len(t, v.Broken, len(c.broken), v.Broken)
			for i, want := range c.broken {
				require.Contains(t, v.Broken[i], want)
			}
			if len(c.broken) == 0 {
				require.NoError(t, v.failure())
				return
			}
			var f *failure
			require.ErrorAs(t, v.failure(), &f)
			require.Equal(t, exitBroken, f.code)
		})
	}
}

func TestFigures(t *testing.T) {
	l := newTimeline(30)
	l.paced(0, 29, 1)
	l.arrivals[29].accepted = false
	l.call(29, 4*time.Second, retry)
	l.call(29, 5*time.Second, again, changed)
	v, err := judge([]destination{l.destination}, l.arrivals)
	require.NoError(t, err)
	require.Equal(t, 30, v.Events)
	require.Equal(t, 32, v.Attempts)
	require.InDelta(t, 5, v.Seconds, 1e-9)
	f := v.Keys[0]
	require.InDelta(t, 2.8, f.BacklogSeconds, 1e-9)
	require.InDelta(t, 10, f.Configured, 1e-9)
	require.InDelta(t, 1, f.Ratio, 1e-9)
	require.InDelta(t, 0, f.Excess, 1e-6)
	require.Equal(t, []int{30, 32, 0, 1, 1}, []int{f.Jobs, f.Attempts, f.Lost, f.Duplicated, f.Damaged})
}

// A broken bound ends the command with an exit code of its own, and the figures
// and the plot are there all the same.
func TestBrokenBound(t *testing.T) {
	l := newTimeline(30)
	l.paced(0, 26, 1)
	l.call(27, 1500*time.Millisecond, refused)
	l.call(28, 1500*time.Millisecond)
	var results, notes bytes.Buffer
	s := settings{plot: filepath.Join(t.TempDir(), "p.png")}
	err := conclude(s, []destination{l.destination}, l.arrivals, output{&results, &notes})
	var f *failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, exitBroken, f.code)
	require.Contains(t, f.Error(), "bounds are broken:\n  ")
	require.Contains(t, f.Error(), "2 lost")
	require.Contains(t, results.String(), "10/s burst 2")
	require.NotContains(t, results.String(), "All bounds kept")
	requireChart(t, s.plot, 1)
}

func TestPlotThatCannotBeWritten(t *testing.T) {
	l := newTimeline(30)
	l.paced(0, 29, 1)
	var results bytes.Buffer
	err := conclude(settings{plot: t.TempDir()}, []destination{l.destination}, l.arrivals, output{&results, os.Stderr})
	var f *failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, exitNoRun, f.code)
	require.Contains(t, results.String(), "All bounds kept", "the figures are shown all the same")
}
