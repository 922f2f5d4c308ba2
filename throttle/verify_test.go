package throttle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// epoch is when the histories of the tests begin: a Monday, 00:00 UTC.
var epoch = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// A logbook writes a history; times are seconds since epoch.
type logbook struct {
	t       require.TestingT
	entries []string
	ids     int
}

func (l *logbook) instant(seconds float64) int64 {
	return epoch.UnixMicro() + int64(seconds*1e6+0.5)
}

func (l *logbook) add(format string, args ...any) {
	l.entries = append(l.entries, fmt.Sprintf(format, args...))
}

// policy puts one in force: a rate, a burst, and further fields.
func (l *logbook) policy(at float64, rate string, burst int64, with ...func(*Policy)) {
	limit, err := ParseLimit(rate, burst)
	require.NoError(l.t, err)
	p := Policy{Key: "k", Limit: limit}
	for _, change := range with {
		change(&p)
	}
	l.add("p %d %s", l.instant(at), p.text())
}

func withQuota(quotas ...Quota) func(*Policy) {
	return func(p *Policy) { p.Quotas = quotas }
}

// job departs, and gets the name of its number: "1", "2" and so on.
func (l *logbook) job(at float64, cost int) {
	l.ids++
	l.add("d %d %d 1 0 1 - %d k", l.instant(at), cost, l.ids)
}

func (l *logbook) jobs(cost int, at ...float64) {
	for _, s := range at {
		l.job(s, cost)
	}
}

// paced is n jobs of cost 1, one each step from an instant on.
func (l *logbook) paced(from, step float64, n int) {
	for i := range n {
		l.job(from+float64(i)*step, 1)
	}
}

func (l *logbook) forced(at float64, cost int) {
	l.ids++
	l.add("d %d %d 1 0 1 f %d k", l.instant(at), cost, l.ids)
}

// again gives a job's slot up for a later one.
func (l *logbook) again(at float64, cost, id int) {
	l.add("d %d %d 2 1 1 - %d k", l.instant(at), cost, id)
}

func (l *logbook) settle(at float64, off, id int) {
	l.add("s %d %d 1 %d k", l.instant(at), off, id)
}

func (l *logbook) verify() Verification {
	h, err := parseHistory("k", l.entries)
	require.NoError(l.t, err)
	return h.Verify()
}

// said is violations in one line each, times in seconds since epoch.
func said(violations []Violation) (lines []string) {
	for _, v := range violations {
		lines = append(lines, fmt.Sprintf("%s %g-%g: %.6g > %.6g, %d early: %s", v.What,
			v.From.Sub(epoch).Seconds(), v.To.Sub(epoch).Seconds(), v.Cost, v.Allowed, v.Early, strings.Join(v.Jobs, " ")))
	}
	return lines
}

func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name string
		log  func(*logbook)
		want []string // violations
	}{
		{"nothing", func(l *logbook) { l.policy(0, "1/s", 1) }, nil},
		{"a single job", func(l *logbook) { l.policy(0, "1/s", 1); l.job(0, 1) }, nil},
		{"saturated", func(l *logbook) { l.policy(0, "1/s", 1); l.paced(0, 1, 100) }, nil},
		{"a burst and its pace", func(l *logbook) {
			l.policy(0, "1/s", 5)
			l.jobs(1, 0, 0, 0, 0, 0)
			l.paced(1, 1, 50)
		}, nil},
		{"a microsecond early is rounding", func(l *logbook) { l.policy(0, "10/s", 1); l.jobs(1, 0, 0.099999) }, nil},
		{"two are not", func(l *logbook) { l.policy(0, "10/s", 1); l.jobs(1, 0, 0.099997) },
			[]string{"rate 0-0.099997: 2 > 1.99997, 1 early: 2"}},

		{"one too many at once", func(l *logbook) { l.policy(0, "1/s", 2); l.jobs(1, 0, 0, 0) },
			[]string{"rate 0-0: 3 > 2, 1 early: 3"}},
		// The job that left too early makes the next one too early; they are one excess.
		{"one too many among the paced", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.paced(0, 1, 6)
			l.job(5.5, 1)
			l.paced(6, 1, 100)
		}, []string{"rate 5-6: 3 > 2, 1 early: 7"}},
		{"one too many after a burst", func(l *logbook) {
			l.policy(0, "1/s", 5)
			l.jobs(1, 0, 0, 0, 0, 0)
			l.paced(1, 1, 20)
			l.job(20.25, 1)
			l.paced(21, 1, 20)
		}, []string{"rate 0-21: 27 > 26, 1 early: 26"}},
		{"the window begins where the bucket was empty", func(l *logbook) {
			l.policy(0, "1/s", 3)
			l.jobs(1, 0, 0, 10, 10, 10.5, 11, 11.5)
		}, []string{"rate 10-11.5: 5 > 4.5, 1 early: 7"}},
		{"written at the end of the log", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.paced(0, 1, 20)
			l.job(5.5, 1)
		}, []string{"rate 5-6: 3 > 2, 1 early: 21"}},
		{"ten too many are one excess", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.paced(0, 1, 6)
			l.jobs(1, 5.1, 5.1, 5.1, 5.2, 5.2, 5.3, 5.4, 5.5, 5.6, 5.7)
			l.paced(6, 1, 50)
		}, []string{"rate 5-6: 12 > 2, 10 early: 7 8 9 10 11"}},
		{"two at different times", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.paced(0, 1, 11)
			l.job(10.5, 1)
			l.paced(11, 1, 50)
			l.job(60.25, 1)
			l.paced(61, 1, 5)
		}, []string{"rate 10-11: 3 > 2, 1 early: 12", "rate 60-61: 3 > 2, 1 early: 63"}},
		{"twice the rate all the time", func(l *logbook) { l.policy(0, "1/s", 1); l.paced(0, 0.5, 101) },
			[]string{"rate 0-50: 101 > 51, 50 early: 2 4 6 8 10"}},
		{"one that has room makes the next too early", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 9.5, 10, 11, 12)
		}, []string{"rate 9.5-10: 2 > 1.5, 1 early: 3"}},

		{"a dear job leaves an empty bucket in debt", func(l *logbook) {
			l.policy(0, "1/s", 5)
			l.job(0, 10)
			l.jobs(1, 6, 7, 8)
			l.job(13, 7)
			l.jobs(1, 16)
		}, nil},
		{"the debt is not honoured", func(l *logbook) { l.policy(0, "1/s", 5); l.job(0, 10); l.jobs(1, 5.5) },
			[]string{"rate 0-5.5: 11 > 10.5, 1 early: 2"}},
		{"a dear job before it is empty", func(l *logbook) { l.policy(0, "1/s", 5); l.jobs(2, 0); l.job(1, 10) },
			[]string{"rate 0-1: 12 > 11, 1 early: 2"}},
		{"a cost of the whole burst", func(l *logbook) { l.policy(0, "1/s", 5); l.jobs(5, 0, 5, 10, 14.5) },
			[]string{"rate 10-14.5: 10 > 9.5, 1 early: 4"}},

		{"a slot that was given up", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.again(2, 1, 2)
			l.jobs(1, 3)
		}, nil},
		{"a slot that was used twice", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.again(1.5, 1, 1) // and not the second
			l.jobs(1, 2)
		}, []string{"rate 1-2: 3 > 2, 1 early: 1"}},

		{"it cost less than charged", func(l *logbook) {
			l.policy(0, "1/s", 10)
			l.job(0, 10)
			l.settle(1, -6, 1)
			l.job(1, 7)
			l.job(2, 1)
		}, nil},
		{"not so much less", func(l *logbook) {
			l.policy(0, "1/s", 10)
			l.job(0, 10)
			l.settle(1, -6, 1)
			l.job(1, 8)
		}, []string{"rate 0-1: 12 > 11, 1 early: 2"}},
		{"it cost nothing", func(l *logbook) { l.policy(0, "1/s", 1); l.job(0, 1); l.settle(0, -5, 1); l.job(0, 1) }, nil},
		{"it cost more: debt, not a departure", func(l *logbook) {
			l.policy(0, "1/s", 2)
			l.job(0, 2)
			l.settle(1, 10, 1)
			l.job(11, 1)
		}, nil},
		{"it cost more, and nobody waited", func(l *logbook) {
			l.policy(0, "1/s", 2)
			l.job(0, 2)
			l.settle(1, 10, 1)
			l.job(9, 1)
		}, []string{"rate 0-9: 13 > 11, 1 early: 2"}},
		{"a slot that was given out before it was known to cost more", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.settle(0.5, 1, 1)
			l.jobs(1, 3)
		}, nil},
		{"it takes the place of one that cost less", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1, 2)
			l.settle(1, 1, 1)
			l.settle(1.5, -1, 2)
			l.jobs(1, 3)
		}, nil},
		{"one that was given out afterwards", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.settle(0.5, 1, 1)
			l.jobs(1, 2.5)
		}, []string{"rate 0-2.5: 4 > 3.5, 1 early: 3"}},

		{"forced past the limit, and honoured", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.forced(1, 2)
			l.forced(1.5, 1)
			l.jobs(1, 5)
		}, nil},
		{"what follows a forced one too early", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.forced(1.5, 1)
			l.jobs(1, 2.5)
			l.paced(3, 1, 20)
		}, []string{"rate 1-3: 4 > 3, 1 early: 4"}},
		{"forced before a slot that had been given out", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.forced(0.5, 1)
			l.jobs(1, 3)
		}, nil},

		{"a raised rate reaches what waits", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.policy(1, "10/s", 1)
			l.jobs(1, 1.1, 1.2)
		}, nil},
		{"it counts from the last departure on", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0)
			l.policy(0.1, "10/s", 1)
			l.jobs(1, 0.1)
		}, nil},
		{"but not before", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 0.5)
			l.policy(0.6, "10/s", 1)
			l.jobs(1, 0.6)
		}, []string{"rate 0-0.5: 2 > 1.5, 1 early: 2"}},
		{"it reaches what has a slot by then", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.policy(0.9, "10/s", 1)
			l.jobs(1, 1.01, 1.11)
		}, nil},
		{"and what has leaked of that by the next policy", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.policy(0.5, "10/s", 1)
			l.policy(0.75, "1/s", 1)
			l.jobs(1, 0.75)
			l.jobs(1, 1.75)
		}, nil},
		{"a lowered rate", func(l *logbook) {
			l.policy(0, "10/s", 1)
			l.jobs(1, 0, 0.1)
			l.policy(0.15, "1/s", 1)
			l.jobs(1, 0.65, 1.65)
		}, nil},
		{"a lowered rate that is not kept", func(l *logbook) {
			l.policy(0, "10/s", 1)
			l.jobs(1, 0, 0.1)
			l.policy(0.15, "1/s", 1)
			l.jobs(1, 0.65, 0.75)
		}, []string{"rate 0.65-0.75: 2 > 1.1, 1 early: 4"}},
		{"a slot of the old policy is kept to", func(l *logbook) {
			l.policy(0, "1/s", 5)
			l.jobs(1, 0, 0, 0, 0, 0, 1)
			l.policy(0.5, "1/s", 1)
			l.jobs(1, 6)
		}, nil},
		{"a raised burst lets others leave before the slots that were given out", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.policy(0.1, "1/s", 5)
			l.jobs(1, 0.1, 0.1, 0.1, 1.1)
		}, nil},
		{"one of them too many", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.policy(0.1, "1/s", 5)
			l.jobs(1, 0.1, 0.1, 0.1, 0.1, 1.1)
		}, []string{"rate 0-1.1: 7 > 6.1, 1 early: 7"}},
		{"a lowered burst", func(l *logbook) {
			l.policy(0, "1/s", 5)
			l.jobs(1, 0, 0, 0)
			l.policy(1, "1/s", 2)
			l.jobs(1, 1)
		}, []string{"rate 0-1: 4 > 3, 1 early: 4"}},
		{"a policy that nobody can read", func(l *logbook) {
			l.policy(0, "1/s", 1)
			l.jobs(1, 0, 1)
			l.add("p 7 ?")
			l.jobs(1, 1, 1, 1)
			l.policy(2, "1/s", 1)
			l.jobs(1, 2, 3)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &logbook{t: t}
			c.log(l)
			require.Equal(t, c.want, said(l.verify().Violations))
		})
	}
}

func TestVerificationTellsHowMuchWasUsed(t *testing.T) {
	l := &logbook{t: t}
	l.add("d %d 1 1 0 1 - early k", l.instant(-5)) // nobody knows under which policy
	l.entries[0] = strings.Replace(l.entries[0], "d ", "d", 1)
	l.policy(0, "10/s", 2)
	l.paced(0, 0.1, 11)
	l.forced(1, 2)
	l.settle(1, 3, 1)
	l.settle(1, -1, 2)
	l.job(9, 1)
	l.paced(10, 0.125, 9)
	v := l.verify()
	require.True(t, v.OK())
	require.Equal(t, "k", v.Key)
	require.Equal(t, epoch, v.From)
	require.Equal(t, epoch.Add(11*time.Second), v.To)
	require.Equal(t, []int{22, 1, 1, 1, 0}, []int{v.Departures, v.Forced, v.Settlements, v.Damaged, v.Unjudged})
	require.InDelta(t, 25, v.Cost, 1e-9)
	require.InDelta(t, 112, v.Allowed, 1e-9)
	require.InDelta(t, 25.0/112, v.Used, 1e-9)
	require.Zero(t, v.Busy, "the burst is never used up but by the forced one")
	require.Zero(t, v.Pace)

	l = &logbook{t: t}
	l.policy(0, "10/s", 1)
	l.paced(0, 0.1, 11)
	l.paced(9, 0.125, 9)
	v = l.verify()
	require.True(t, v.OK())
	require.Equal(t, 2*time.Second, v.Busy)
	require.InDelta(t, 0.9, v.Pace, 1e-9)
}

func TestDeparturesWithoutAPolicyAreNotJudged(t *testing.T) {
	l := &logbook{t: t}
	l.jobs(1, 0, 0, 0)
	l.policy(1, "1/s", 1)
	l.jobs(1, 1)
	v := l.verify()
	require.True(t, v.OK())
	require.Equal(t, 3, v.Unjudged)
	require.Equal(t, 1, v.Departures)
	require.Equal(t, epoch.Add(time.Second), v.From)
}

// A history that was not read from a log goes by its instants.
func TestVerifyOfAHistoryByHand(t *testing.T) {
	h := History{Key: "k", Policies: []PolicyChange{{Policy: DefaultPolicy}}}
	for i := range 10 {
		h.Departures = append(h.Departures, Departure{At: epoch.Add(time.Duration(i) * 100 * time.Millisecond), ID: fmt.Sprint(i), Cost: 1})
	}
	require.True(t, h.Verify().OK())
	h.Settlements = []Settlement{{At: epoch.Add(450 * time.Millisecond), Off: 1}}
	require.Equal(t, []string{"rate 0.4-0.5: 3 > 2, 1 early: 5"}, said(h.Verify().Violations))
}

func TestSteps(t *testing.T) {
	l := &logbook{t: t}
	l.job(-1, 1)
	l.policy(0, "1/s", 2)
	l.jobs(1, 10, 10, 10.5)
	l.settle(11, 3, 2)
	l.job(15, 1)
	h, err := parseHistory("k", l.entries)
	require.NoError(t, err)
	var got []string
	for s := range h.Steps() {
		id := "-"
		if s.Departure != nil {
			id = s.Departure.ID
		}
		got = append(got, fmt.Sprintf("%s %v %g of %g: %g to %g of %d %v", id, s.Since, s.Cost, s.Allowed, s.Before, s.After, s.Limit.Burst, s.Early))
	}
	require.Equal(t, []string{
		"2 0s 1 of 2: 0 to 1 of 2 false",
		"3 0s 2 of 2: 1 to 2 of 2 false",
		"4 500ms 3 of 2.5: 1.5 to 2.5 of 2 true",
		"- 1s 6 of 3: 1 to 4 of 2 false",
		"5 5s 7 of 7: 0 to 1 of 2 false",
	}, got)
	for range h.Steps() {
		break
	}
}
