package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// Jobs leave within the hours of their zone, also on the days when its clocks change.
func TestJobsLeaveWithinTheirHours(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, c := range []struct {
			name, zone, from string
			open             []string
			days             int
		}{
			{"office hours over a change to summer time", "Europe/Berlin", "2026-03-27", []string{"09:00-18:00"}, 4},
			{"weekdays over a change to winter time", "Europe/Berlin", "2026-10-23", []string{"mon-fri 09:00-18:00"}, 5},
			{"nights, also the one with an hour twice", "Europe/Berlin", "2026-10-24", []string{"22:00-02:30"}, 3},
			{"an hour that is skipped", "America/New_York", "2026-03-07", []string{"02:15-02:45"}, 3},
			{"several a day", "", "2026-05-01", []string{"06:00-07:00", "sat,sun 20:00-24:00"}, 4},
		} {
			t.Run(c.name, func(t *testing.T) {
				d.reset(t)
				zone := time.UTC
				if c.zone != "" {
					zone = d.zone(t, c.zone)
				}
				from, err := time.ParseInLocation(time.DateOnly, c.from, zone)
				require.NoError(t, err)
				d.set(t, from)
				hours := throttle.Hours{Zone: c.zone}
				for _, text := range c.open {
					o, err := throttle.ParseOpening(text)
					require.NoError(t, err)
					hours.Open = append(hours.Open, o)
				}
				d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/10m", 1), Hours: &hours})
				s := newSimulation(t, d)
				s.poll = time.Hour
				s.enqueue(entries("k", ids(200)...)...)
				s.forward(time.Duration(c.days) * 24 * time.Hour)
				open := func(at time.Time) bool { return isOpen(hours, at.In(zone)) }
				left := make(map[time.Time]bool)
				for _, dep := range s.departures {
					require.True(t, open(dep.At), "left at %v", dep.At.In(zone))
					left[dep.At.Truncate(time.Minute)] = true
				}
				// Every minute that is open for the first time is used.
				for at := from; at.Before(s.now.Add(-10 * time.Minute)); at = at.Add(time.Minute) {
					if open(at) && !open(at.Add(-time.Minute)) {
						require.True(t, left[at] || left[at.Add(time.Minute)], "nothing left at %v", at.In(zone))
					}
				}
			})
		}
	})
}

// isOpen is what hours mean, by the wall clock.
func isOpen(h throttle.Hours, at time.Time) bool {
	minute := at.Hour()*60 + at.Minute()
	on := func(o throttle.Opening, day time.Weekday) bool {
		for _, d := range o.Days {
			if d == day {
				return true
			}
		}
		return len(o.Days) == 0
	}
	for _, o := range h.Open {
		from, to := int(o.From.Minutes()), int(o.To.Minutes())
		switch {
		case from < to && on(o, at.Weekday()) && minute >= from && minute < to,
			from > to && on(o, at.Weekday()) && minute >= from,
			from > to && on(o, (at.Weekday()+6)%7) && minute < to:
			return true
		}
	}
	return false
}

// ramped is what may have left after d on a ramp from a fraction of the rate.
func ramped(l throttle.Limit, from float64, over, d time.Duration) float64 {
	t, y := d.Seconds(), over.Seconds()
	within := min(t, y)
	full := from*within + (1-from)*within*within/(2*y) + t - within
	return float64(l.Burst) + full*float64(l.Rate)/l.Period.Seconds()
}

func TestRampFollowsAPauseACoolDownAndAnOutage(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		l := limit(t, "10/s", 1)
		if d.mini != nil {
			l = limit(t, "2/s", 1)
		}
		ramp := throttle.Ramp{From: 0.1, Over: time.Minute}
		for name, hold := range map[string]func(s *simulation){
			"pause": func(s *simulation) {
				s.control(script.Pause, time.Time{}, "k")
				s.forward(time.Minute)
				s.control(script.Resume, time.Time{}, "k")
			},
			"cool-down": func(s *simulation) {
				until := s.now.Add(time.Minute)
				s.control(script.CoolDown, until, "k")
				s.until(until)
			},
			"no scheduler": func(s *simulation) {
				s.down = true
				s.forward(time.Minute)
				s.down = false
			},
			"no worker": func(s *simulation) {
				s.stop()
				s.forward(time.Minute)
				s.start()
			},
		} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				d.policy(t, throttle.Policy{Key: "*", Limit: l, Ramp: &ramp})
				s := newSimulation(t, d)
				s.poll = time.Second
				s.enqueue(entries("k", ids(3000)...)...)
				s.forward(5 * time.Second)
				require.InEpsilon(t, float64(l.Rate)*5, len(s.departures), 0.15, "at once without a pause")
				hold(s)
				from, before := s.now, len(s.departures)
				s.forward(2 * time.Minute)
				slots := s.slots("k", from)[before:]
				first := slots[0]
				require.Less(t, first.Seconds(), 1.1+8/float64(l.Rate))
				for i, at := range slots {
					require.LessOrEqual(t, float64(i+1), ramped(l, 0.1, time.Minute, at)+0.001, "job %d at %v", i+1, at)
				}
				last := slots[len(slots)-1]
				want := ramped(l, 0.1, time.Minute, last) - ramped(l, 0.1, time.Minute, first)
				require.InEpsilon(t, want, len(slots)-1, 0.02, "the ramp is used up")
			})
		}
	})
}

// What handlers say of the true cost corrects the bucket either way.
func TestTrueCostIsSettled(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, c := range []struct{ estimate, truth int64 }{{1, 5}, {5, 1}, {3, 0}, {2, 2}} {
			d.reset(t)
			s := paced(t, d, "20/s", 5)
			s.work = 5 * time.Millisecond
			s.cost = func(departure) int64 { return c.truth }
			jobs := entries("k", ids(d.most(400))...)
			for i := range jobs {
				jobs[i].Cost = c.estimate
			}
			s.enqueue(jobs...)
			from := s.now
			s.forward(time.Duration(d.most(400)/20) * time.Second)
			if c.truth == 0 {
				require.Len(t, s.departures, len(jobs), "what cost nothing holds nothing up")
				continue
			}
			last := s.slots("k", from)[len(s.departures)-1]
			rate := float64(int64(len(s.departures)-1)*c.truth) / last.Seconds()
			require.InEpsilon(t, 20, rate, 0.05+10/float64(len(s.departures)*int(c.truth)), "estimated %d, true %d", c.estimate, c.truth)
		}
	})
}

func TestSettlingCorrectsQuotasAndParents(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.set(t, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
		quotas := []throttle.Quota{{Limit: 20, Per: time.Hour, Window: throttle.Fixed}, {Limit: 20, Per: time.Hour, Window: throttle.Sliding}}
		d.family(t,
			throttle.Policy{Key: "p", Limit: limit(t, "100/s", 100), Quotas: quotas},
			throttle.Policy{Key: "c", Limit: limit(t, "100/s", 100), Parent: "p"},
		)
		s := newSimulation(t, d)
		s.work = time.Second
		truth := int64(1)
		s.cost = func(departure) int64 { return truth }
		jobs := entries("c", ids(30)...)
		for i := range jobs {
			jobs[i].Cost = 4
		}
		s.enqueue(jobs...)
		s.forward(30 * time.Second)
		require.Len(t, s.departures, 17, "5 at first, and then whenever 4 of the 20 are left: true cost 17")
		s.forward(20 * time.Minute)
		require.Len(t, s.departures, 17)
		d.set(t, s.now)
		e := d.run(t, d.scripts.Explain(0, "c", "")).Explanation()
		require.Equal(t, []string{"quota", "p"}, []string{e.Cause, e.Holder})
	})
}

// A worker that is busy for long is no outage: the ramp of a key whose jobs depart all
// the while does not begin anew.
func TestBusyWorkersStartNoRamp(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/s", 1), Ramp: &throttle.Ramp{From: 0.1, Over: time.Hour}})
		s := newSimulation(t, d)
		s.lead = 50 * time.Second // so that jobs are long on their way
		s.lease = 500 * time.Second
		parcels := 0
		s.latency = func() time.Duration {
			if parcels++; parcels%2 == 0 {
				return 40 * time.Second
			}
			return time.Millisecond
		}
		s.enqueue(entries("k", ids(60)...)...)
		s.forward(140 * time.Second)
		require.Greater(t, len(s.departures), 45)
	})
}

// What nobody looked at for long comes back on the ramps of all that are above it.
func TestOutageRampsParentsToo(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		rate := int64(100)
		if d.mini != nil {
			rate = 10
		}
		l := throttle.Limit{Rate: rate, Period: time.Second, Burst: 1}
		for name, hold := range map[string]func(s *simulation){
			"no scheduler": func(s *simulation) { s.down = true; s.forward(time.Minute); s.down = false },
			"no worker":    func(s *simulation) { s.stop(); s.forward(time.Minute); s.start() },
		} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				d.family(t, throttle.Policy{Key: "p", Limit: l, Ramp: &throttle.Ramp{From: 0.1, Over: time.Minute}},
					throttle.Policy{Key: "c", Limit: l, Parent: "p"})
				s := newSimulation(t, d)
				s.poll = time.Second
				s.enqueue(entries("c", ids(1000)...)...)
				s.forward(2 * time.Second)
				hold(s)
				before := len(s.departures)
				s.forward(5 * time.Second)
				after := float64(len(s.departures) - before)
				require.LessOrEqual(t, after, ramped(l, 0.1, time.Minute, 5*time.Second+s.lead)+1)
				require.Greater(t, after, ramped(l, 0.1, time.Minute, 4*time.Second)-2)
			})
		}
	})
}

// A run that ends when its charge has leaked is credited with nothing: that would be
// taken out of the charges of others.
func TestLateSettlingIsNoBurst(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		l := limit(t, "10/s", 1)
		d.policy(t, throttle.Policy{Key: "*", Limit: l})
		s := newSimulation(t, d)
		s.work = 2 * time.Second
		n := 0
		var left []departure
		s.cost = func(x departure) int64 {
			if n++; n <= 10 {
				return 0
			}
			left = append(left, x)
			return 1
		}
		s.enqueue(entries("k", ids(60)...)...)
		s.drain(time.Minute)
		s.departures = left // those that truly cost something
		s.keepsLimit(l, "k")
	})
}

// firstIsFree has the first run cost nothing, and the others what they were charged.
func firstIsFree() func(departure) int64 {
	first := true
	return func(x departure) int64 {
		if first {
			first = false
			return 0
		}
		return x.Cost
	}
}

// A quota gives back only what it still counts for that job.
func TestQuotaDoesNotGiveBackWhatOthersUsed(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1000/s", 1000), Quotas: []throttle.Quota{{Limit: 50, Per: time.Second, Window: throttle.Sliding}}})
		s := newSimulation(t, d)
		s.work = 5 * time.Second
		s.cost = firstIsFree()
		jobs := entries("k", "dear")
		jobs[0].Cost = 50
		s.enqueue(jobs...)
		s.forward(4950 * time.Millisecond)
		s.departures = nil
		s.enqueue(entries("k", ids(200)...)...)
		s.drain(time.Minute)
		require.LessOrEqual(t, s.mostWithin("k", time.Second), int64(50))
	})
}

// A policy whose tail is damaged is none: what is left of it would allow more.
func TestDamagedTailLeavesTheKeyToTheNextSource(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, tail := range []string{`{"q":[[1,`, `{"open":[]}`, `{"q":[["a"]]}`, `{"ramp":[1]}`, `{"up":7}`, `{"min":[0,0]}`, `{"w":0}`, `[`, `null`, `7`, `x`} {
			d.reset(t)
			d.run(t, d.policies("*", policyText(5, time.Minute, 1, 100), "k", "1000 1000000 1000 100 "+tail))
			s := newSimulation(t, d)
			s.enqueue(entries("k", ids(10)...)...)
			s.forward(30 * time.Second)
			require.LessOrEqual(t, len(s.departures), 3, tail)
			require.NotEmpty(t, s.departures, tail)
		}
	})
}

// However late runs end and whatever they cost below their estimates, what truly left
// keeps the limit in every window.
func TestTrueCostsBelowTheirEstimatesKeepTheLimit(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(10))
		rapid.Check(t, func(t *rapid.T) {
			l := drawLimit(t)
			s := drawnSimulation(t, d, l, 1000)
			s.latency = between(t, 0, 100*time.Millisecond)
			s.work = between(t, 0, 3*time.Second)()
			truth := make(map[string]int64)
			s.cost = func(x departure) int64 {
				truth[x.ID] = rapid.Int64Range(0, x.Cost).Draw(t, "true cost")
				return truth[x.ID]
			}
			s.end = func(departure) (string, time.Duration) {
				return rapid.SampledFrom([]string{script.Done, script.Done, script.Dead, script.Retry}).Draw(t, "end"), between(t, 0, time.Second)()
			}
			s.enqueue(drawJobs(t, "k", rapid.SampledFrom([]int64{1, 5, 30}).Draw(t, "max cost"))...)
			s.drain(100 * 24 * time.Hour)
			var left []departure
			for _, x := range s.departures {
				if x.Cost = truth[x.ID]; x.Cost > 0 {
					left = append(left, x)
				}
			}
			if s.departures = left; len(left) > 0 {
				s.keepsLimit(l, "k")
			}
		})
	})
}

// A job may be dearer than a sliding quota by any factor: it takes a bounded number of
// entries.
func TestVeryDearJobTakesABoundedLog(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1000000000/s", throttle.MaxBurst), Quotas: []throttle.Quota{{Limit: 1, Per: time.Second, Window: throttle.Sliding}}})
		s := newSimulation(t, d)
		jobs := entries("k", "dear")
		jobs[0].Cost = throttle.MaxCost
		s.enqueue(jobs...)
		s.forward(time.Second)
		require.Len(t, s.departures, 1)
		require.LessOrEqual(t, d.client.ZCard(t.Context(), script.ShardName(0)+"q:1000000:k").Val(), int64(64))
	})
}

// Nobody knows how much of a charge has leaked when the rate changed meanwhile.
func TestNothingIsCreditedAcrossAChangeOfTheRate(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		n := d.most(100)
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "100/s", 100), MaxInFlight: 1000})
		s := newSimulation(t, d)
		s.work = 5 * time.Second
		s.cost = firstIsFree()
		jobs := entries("k", "dear")
		jobs[0].Cost = 100
		s.enqueue(jobs...)
		s.forward(2 * time.Second)
		s.call(d.policies("*", policyText(1, time.Minute, int64(n), 1000)))
		s.enqueue(entries("k", ids(2*n)...)...)
		s.forward(10 * time.Second)
		require.LessOrEqual(t, len(s.departures), 1+n)
	})
}
