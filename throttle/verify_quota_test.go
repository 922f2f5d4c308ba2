package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func withHours(zone string, openings ...string) func(*Policy) {
	return func(p *Policy) {
		p.Hours = &Hours{Zone: zone}
		for _, text := range openings {
			o, err := ParseOpening(text)
			if err != nil {
				panic(err)
			}
			p.Hours.Open = append(p.Hours.Open, o)
		}
	}
}

const hour = 3600.0 // seconds

func TestVerifyQuotas(t *testing.T) {
	sliding := Quota{Limit: 3, Per: time.Minute}
	fixed := Quota{Limit: 3, Per: time.Minute, Window: Fixed}
	berlin := Quota{Limit: 3, Per: day, Window: Fixed, Zone: "Europe/Berlin"}
	for _, c := range []struct {
		name string
		log  func(*logbook)
		want []string // violations
		use  []string
	}{
		{"nothing", func(l *logbook) { l.policy(0, "99/s", 99, withQuota(sliding)) }, nil,
			[]string{"3/m sliding: 0, never"}},
		{"sliding", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 10, 20, 60, 70, 80, 120)
		}, nil, []string{"3/m sliding: 3, 0-20"}},
		{"a microsecond early", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 10, 20, 59.999999, 70, 80, 120)
		}, []string{"quota 3/m sliding 0-59.999999: 4 > 3, 1 early: 4"}, []string{"3/m sliding: 4, 0-59.999999"}},
		{"one too many", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 10, 20, 30, 60, 70, 80, 120)
		}, []string{"quota 3/m sliding 0-30: 4 > 3, 1 early: 4"}, []string{"3/m sliding: 4, 0-30"}},
		{"many too many", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 10, 20)
			l.paced(30, 0.1, 20)
			l.jobs(1, 60, 70, 80, 120)
		}, []string{"quota 3/m sliding 0-31.9: 23 > 3, 20 early: 4 5 6 7 8"}, []string{"3/m sliding: 23, 0-31.9"}},
		{"two at different times", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 10, 20, 30, 60, 70, 80, 120, 130, 140, 150)
		}, []string{"quota 3/m sliding 0-30: 4 > 3, 1 early: 4", "quota 3/m sliding 120-150: 4 > 3, 1 early: 11"},
			[]string{"3/m sliding: 4, 0-30"}},
		{"a dear job takes up windows to come", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.job(0, 8)
			l.jobs(1, 120, 180, 180)
		}, nil, []string{"3/m sliding: 3, 0-0"}},
		{"those that a dear job takes up", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.job(0, 8)
			l.jobs(1, 60, 120, 120)
		}, []string{
			"quota 3/m sliding 60-60: 4 > 3, 1 early: 2",
			"quota 3/m sliding 120-120: 4 > 3, 1 early: 4",
		}, []string{"3/m sliding: 4, 60-60"}},
		{"a dear job while anything is counted", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0)
			l.job(30, 8)
		}, []string{"quota 3/m sliding 0-30: 9 > 8, 1 early: 2"}, []string{"3/m sliding: 4, 0-30"}},
		{"settled", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding, fixed))
			l.jobs(3, 0)
			l.settle(1, -2, 1)
			l.jobs(2, 1)
			l.jobs(1, 60, 70)
			l.settle(80, 2, 3)
			l.jobs(2, 140) // and one of debt
		}, nil, []string{"3/m sliding: 4, 60-80", "3/m fixed: 4, 60-120"}},
		{"settled, and nobody waited", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0)
			l.settle(10, 2, 1)
			l.jobs(1, 59, 60)
		}, []string{"quota 3/m sliding 0-59: 4 > 3, 1 early: 2"}, []string{"3/m sliding: 4, 0-59"}},
		{"forced", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding, fixed))
			l.jobs(1, 0, 10, 20)
			l.forced(30, 1)
			l.jobs(1, 70, 80)
			l.forced(85, 2)
			l.jobs(1, 89)
		}, []string{"quota 3/m sliding 30-89: 6 > 3, 1 early: 8", "quota 3/m fixed 60-120: 6 > 3, 1 early: 8"},
			[]string{"3/m sliding: 6, 30-89", "3/m fixed: 6, 60-120"}},
		{"a slot that was given up does not count", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 10, 20)
			l.again(21, 1, 3)
		}, nil, []string{"3/m sliding: 3, 0-21"}},

		{"fixed", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(fixed))
			l.jobs(1, 57, 58, 59, 60, 61, 119)
		}, nil, []string{"3/m fixed: 3, 0-60"}},
		{"one too many in a fixed one", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(fixed))
			l.jobs(1, 57, 58, 59, 59.999999, 60, 61, 119)
		}, []string{"quota 3/m fixed 0-60: 4 > 3, 1 early: 4"}, []string{"3/m fixed: 4, 0-60"}},
		{"two too many in each", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(fixed))
			l.jobs(1, 57, 58, 59, 59, 59, 60, 61, 118, 119, 119)
		}, []string{"quota 3/m fixed 0-60: 5 > 3, 2 early: 4 5", "quota 3/m fixed 60-120: 5 > 3, 2 early: 9 10"},
			[]string{"3/m fixed: 5, 0-60"}},
		{"debt goes over", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(fixed))
			l.job(0, 8)
			l.jobs(1, 120, 180, 180, 180)
		}, nil, []string{"3/m fixed: 3, 0-60"}},
		{"debt that is not paid", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(fixed))
			l.job(0, 8)
			l.jobs(1, 60, 120, 120)
		}, []string{"quota 3/m fixed 60-120: 4 > 3, 1 early: 2", "quota 3/m fixed 120-180: 4 > 3, 1 early: 4"},
			[]string{"3/m fixed: 4, 60-120"}},
		{"a dear job in a fixed one that is used", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(fixed))
			l.jobs(1, 0)
			l.job(1, 8)
		}, []string{"quota 3/m fixed 0-60: 9 > 8, 1 early: 2"}, []string{"3/m fixed: 9, 0-60"}},

		// Midnight in Berlin is 23:00 UTC.
		{"days of a zone", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(berlin))
			l.jobs(1, 22*hour, 22*hour, 22*hour+3599, 23*hour, 23*hour, 30*hour)
		}, nil, []string{"3/d fixed Europe/Berlin: 3, -3600-82800"}},
		{"one too many on a day of a zone", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(berlin))
			l.jobs(1, 22*hour, 23*hour, 23*hour, 30*hour, 46*hour)
		}, []string{"quota 3/d fixed Europe/Berlin 82800-169200: 4 > 3, 1 early: 5"}, []string{"3/d fixed Europe/Berlin: 4, 82800-169200"}},
		// It is put forward on 28 March 2027: 117 days and 23 hours from epoch.
		{"a day of 23 hours", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(berlin))
			begin := (117*24 + 23) * hour
			l.jobs(1, begin, begin, begin+22.9*hour, begin+23*hour, begin+23*hour, begin+23*hour, begin+23*hour)
		}, []string{"quota 3/d fixed Europe/Berlin 1.02744e+07-1.03608e+07: 4 > 3, 1 early: 7"},
			[]string{"3/d fixed Europe/Berlin: 4, 1.02744e+07-1.03608e+07"}},
		{"a zone that is not known here", func(l *logbook) {
			l.add("p %d %s", l.instant(0), `99 1000000 99 100 {"q":[[3,86400000000,"f","Mars/Olympus"]],"open":["Mars/Olympus",0,10080],"days":["00:00-24:00"]}`)
			l.jobs(1, 0, 0, 0, 0, 0)
		}, nil, nil},

		{"another limit for the same window", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.jobs(1, 0, 0)
			l.policy(1, "99/s", 99, withQuota(Quota{Limit: 2, Per: time.Minute}))
			l.jobs(1, 1)
		}, []string{"quota 2/m sliding 0-1: 3 > 2, 1 early: 3"}, []string{"2/m sliding: 3, 0-1"}},
		{"a raised limit and a dear job before", func(l *logbook) {
			l.policy(0, "99/s", 99, withQuota(sliding))
			l.job(0, 8)
			l.policy(1, "99/s", 99, withQuota(Quota{Limit: 5, Per: time.Minute}))
			l.jobs(1, 60, 60)
		}, nil, []string{"3/m sliding: 3, 0-0"}},
		{"a quota that is new counts from then on", func(l *logbook) {
			l.policy(0, "99/s", 99)
			l.jobs(1, 0, 0, 0, 0, 0, 0)
			l.policy(1, "99/s", 99, withQuota(fixed))
			l.jobs(1, 1, 1, 1)
			l.policy(2, "99/s", 99)
			l.jobs(1, 2, 2, 2, 2)
		}, nil, []string{"3/m fixed: 3, 0-60"}},
		{"by the policy under which the slot was given out", func(l *logbook) {
			l.policy(0, "99/s", 99)
			l.jobs(1, 0, 1, 1, 1, 1)
			l.policy(0.5, "99/s", 99, withQuota(fixed))
			l.jobs(1, 2, 2, 2)
		}, nil, []string{"3/m fixed: 3, 0-60"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &logbook{t: t}
			c.log(l)
			v := l.verify()
			require.Equal(t, c.want, said(v.Violations))
			var use []string
			for _, u := range v.Quotas {
				if u.From.IsZero() {
					use = append(use, fmt.Sprintf("%v: %g, never", u.Quota, u.Most))
					continue
				}
				use = append(use, fmt.Sprintf("%v: %g, %g-%g", u.Quota, u.Most, u.From.Sub(epoch).Seconds(), u.To.Sub(epoch).Seconds()))
			}
			require.Equal(t, c.use, use)
			if c.use == nil {
				require.Equal(t, []string{
					"quota 3/d fixed Mars/Olympus: the zone is not known here", "hours: the zone Mars/Olympus is not known here",
				}, v.Unchecked)
			}
		})
	}
}

// Not even a job that takes up windows for years makes a check slow, or stricter than
// the scripts: the last of its parts takes the rest.
func TestVerifyOfADearestJob(t *testing.T) {
	l := &logbook{t: t}
	l.policy(0, "1000000000/s", 1000000000, withQuota(Quota{Limit: 1, Per: time.Second}))
	l.job(0, MaxCost)
	l.jobs(1, 63.5, 64, 64.5)
	require.Equal(t, []string{
		"quota 1/s sliding 63-63.5: 1e+09 > 1, 1 early: 2",
		"quota 1/s sliding 64-64.5: 2 > 1, 1 early: 4",
	}, said(l.verify().Violations))
}

func TestVerifyHours(t *testing.T) {
	for _, c := range []struct {
		name string
		log  func(*logbook)
		want []string
	}{
		{"open", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("", "mon-fri 09:00-18:00"))
			l.jobs(1, 9*hour, 12*hour, 17.999*hour, 33*hour)
		}, nil},
		{"before, between and after", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("", "mon-fri 09:00-18:00"))
			l.jobs(2, 8.5*hour, 9*hour, 18*hour, 19*hour, 33*hour-1, 33*hour, 4*24*hour+17*hour)
			l.jobs(1, 4*24*hour+18*hour, 5*24*hour, 6*24*hour, 7*24*hour, 7*24*hour+9*hour)
		}, []string{
			"hours 30600-30600: 2 > 0, 1 early: 1",
			"hours 64800-118799: 6 > 0, 3 early: 3 4 5",
			"hours 410400-604800: 4 > 0, 4 early: 8 9 10 11",
		}},
		{"two nights, nothing between", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("", "09:00-18:00"))
			l.jobs(1, 19*hour, 32*hour, 43*hour)
		}, []string{"hours 68400-115200: 2 > 0, 2 early: 1 2", "hours 154800-154800: 1 > 0, 1 early: 3"}},
		{"always open", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("", "00:00-24:00"))
			l.jobs(1, 0, 24*hour-1, 7*24*hour-1, 7*24*hour)
		}, nil},
		{"over midnight and the week's end", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("", "sat,sun 22:00-02:00"))
			l.jobs(1, 0, 2*hour-1, 2*hour, 5*24*hour+22*hour, 6*24*hour, 7*24*hour-1, 7*24*hour, 7*24*hour+2*hour)
		}, []string{"hours 7200-7200: 1 > 0, 1 early: 3", "hours 612000-612000: 1 > 0, 1 early: 8"}},
		{"by the clocks of a zone", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("Europe/Berlin", "mon 09:00-18:00"))
			l.jobs(1, 8*hour, 17*hour-1, 17*hour)
		}, []string{"hours 61200-61200: 1 > 0, 1 early: 3"}},
		{"forced", func(l *logbook) {
			l.policy(0, "99/s", 99, withHours("", "09:00-18:00"))
			l.forced(0, 1)
		}, nil},
		{"by the policy in force", func(l *logbook) {
			l.policy(0, "99/s", 99)
			l.jobs(1, 0, 8*hour)
			l.policy(7*hour, "99/s", 99, withHours("", "09:00-18:00"))
			l.jobs(1, 8.5*hour, 9*hour)
			l.policy(10*hour, "99/s", 99, withHours("", "09:00-20:00"))
			l.jobs(1, 19*hour, 20*hour)
			l.policy(21*hour, "99/s", 99)
			l.jobs(1, 22*hour)
		}, []string{"hours 30600-30600: 1 > 0, 1 early: 3", "hours 72000-72000: 1 > 0, 1 early: 6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &logbook{t: t}
			c.log(l)
			require.Equal(t, c.want, said(l.verify().Violations))
		})
	}
}
