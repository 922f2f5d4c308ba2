package throttle_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// family stores policies with their parents; the shards are one.
func (d *driven) family(t require.TestingT, policies ...throttle.Policy) {
	var pairs []string
	for _, p := range policies {
		pairs = append(pairs, p.Key, throttle.PolicyText(p))
	}
	d.run(t, d.scripts.Policies(0, 1, rules(pairs...)))
}

// shares are the parts that keys had of what left from an instant until now.
func (s *simulation) shares(from time.Time) (shares map[string]float64, total float64) {
	shares = make(map[string]float64)
	for _, d := range s.departures {
		if !d.At.Before(from) && d.At.Before(s.now) {
			shares[d.Key] += float64(d.Cost)
			total += float64(d.Cost)
		}
	}
	for k := range shares {
		shares[k] /= total
	}
	return shares, total
}

// keepsParent checks that what left of all keys together keeps a limit.
func (s *simulation) keepsParent(l throttle.Limit) {
	b := throttle.Bucket{Limit: l}
	rounding := float64(l.Rate) / float64(l.Period.Microseconds())
	var last time.Time
	for _, d := range s.departures {
		require.False(s.t, d.At.Before(last), "departures are in order")
		last = d.At
		b.Take(d.At, float64(d.Cost))
		require.LessOrEqual(s.t, b.Level, max(float64(l.Burst), float64(d.Cost))+rounding)
	}
}

func TestSiblingsShareAParentByWeight(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		rate := 200.0
		if d.mini != nil {
			rate = 20
		}
		parent := limit(t, fmt.Sprintf("%.0f/s", rate), 1)
		policies := []throttle.Policy{{Key: "acme", Limit: parent}}
		weights := []int{1, 2, 4}
		sum := 0
		children := d.most(50) / 2 * 2
		if d.mini != nil {
			children = 6
		}
		for i := range children {
			policies = append(policies, throttle.Policy{
				Key: fmt.Sprintf("acme/%d", i), Limit: limit(t, "100/s", 10), Parent: "acme", Weight: weights[i%3],
			})
			sum += weights[i%3]
		}
		d.family(t, policies...)
		s := newSimulation(t, d)
		for i := range children {
			n := 1000
			if i == 2 {
				n = 20 // this one runs out, and lends its share from then on
			}
			s.enqueue(entries(fmt.Sprintf("acme/%d", i), ids(d.most(n))...)...)
		}
		from := s.now
		s.forward(2 * time.Second)
		_, total := s.shares(from)
		require.InEpsilon(t, rate*s.now.Sub(from).Seconds(), total, 0.01, "the parent is used up")
		if d.mini != nil {
			return // and the rest is a matter of many jobs
		}
		s.forward(3 * time.Second)
		from = s.now // the idle one has nothing left
		s.forward(20 * time.Second)
		shares, total := s.shares(from)
		require.InEpsilon(t, 200*20, total, 0.01, "what the idle one leaves is lent out")
		require.NotContains(t, shares, "acme/2")
		for i := range children {
			if i != 2 {
				require.InEpsilon(t, float64(weights[i%3])/float64(sum-4), shares[fmt.Sprintf("acme/%d", i)], 0.03, "child %d", i)
			}
		}
		s.keepsParent(parent)
	})
}

// Each level of four has its say: endpoint, tenant, account, provider.
func TestFourLevelsOfParents(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t,
			throttle.Policy{Key: "provider", Limit: limit(t, "60/s", 1)},
			throttle.Policy{Key: "account-1", Limit: limit(t, "50/s", 3), Parent: "provider", Weight: 2},
			throttle.Policy{Key: "account-2", Limit: limit(t, "50/s", 3), Parent: "provider"},
			throttle.Policy{Key: "tenant", Limit: limit(t, "10/s", 1), Parent: "account-1"},
			throttle.Policy{Key: "tenant/*", Limit: limit(t, "100/s", 1), Parent: "tenant"},
			throttle.Policy{Key: "other/*", Limit: limit(t, "100/s", 1), Parent: "account-1"},
			throttle.Policy{Key: "second/*", Limit: limit(t, "100/s", 1), Parent: "account-2"},
		)
		s := newSimulation(t, d)
		for _, key := range []string{"tenant/a", "tenant/b", "other/a", "second/a"} {
			s.enqueue(entries(key, ids(d.most(1000))...)...)
		}
		from := s.now
		seconds := float64(d.most(60)) / 60
		if d.mini == nil {
			seconds = 10
		}
		s.forward(time.Duration(seconds * float64(time.Second)))
		shares, total := s.shares(from)
		require.InDelta(t, 60*seconds, total, 2+0.01*60*seconds)
		// The tenant is held by its own limit, the accounts share the provider 2 : 1.
		require.InDelta(t, 5*seconds, shares["tenant/a"]*total, 2)
		require.InDelta(t, 5*seconds, shares["tenant/b"]*total, 2)
		require.InDelta(t, 30*seconds, shares["other/a"]*total, 3)
		require.InDelta(t, 20*seconds, shares["second/a"]*total, 3)
		s.keepsParent(limit(t, "60/s", 1))
	})
}

func TestMinimumHoldsAgainstWeights(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t,
			throttle.Policy{Key: "p", Limit: limit(t, "20/s", 1)},
			throttle.Policy{Key: "heavy", Limit: limit(t, "100/s", 1), Parent: "p", Weight: 99},
			throttle.Policy{Key: "light", Limit: limit(t, "100/s", 1), Parent: "p", Weight: 1, Minimum: throttle.Rate{Cost: 5, Per: time.Second}},
		)
		s := newSimulation(t, d)
		s.enqueue(entries("heavy", ids(d.most(1000))...)...)
		s.enqueue(entries("light", ids(d.most(1000))...)...)
		from := s.now
		seconds := 20.0
		if d.mini != nil {
			seconds = 3
		}
		s.forward(time.Duration(seconds) * time.Second)
		shares, total := s.shares(from)
		require.InDelta(t, 20*seconds, total, 3)
		require.InDelta(t, 5*seconds, shares["light"]*total, 2)
	})
}

// A child whose own slot is far off keeps nobody waiting.
func TestSiblingDoesNotWaitForAFarSlot(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t,
			throttle.Policy{Key: "p", Limit: limit(t, "50/s", 1)},
			throttle.Policy{Key: "slow", Limit: limit(t, "1/m", 1), Parent: "p", Weight: 1000},
			throttle.Policy{Key: "fast", Limit: limit(t, "100/s", 1), Parent: "p"},
		)
		s := newSimulation(t, d)
		s.enqueue(entries("slow", ids(20)...)...)
		s.enqueue(entries("fast", ids(d.most(200))...)...)
		from := s.now
		s.forward(time.Duration(d.most(200)) * time.Second / 50)
		require.GreaterOrEqual(t, len(s.slots("fast", from)), d.most(200)-3)
		require.LessOrEqual(t, len(s.slots("slow", from)), 1)
	})
}

// A key that is a parent as well has jobs of its own: they take their turn like a child.
func TestParentWithJobsOfItsOwn(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		l := limit(t, "30/s", 1)
		d.family(t,
			throttle.Policy{Key: "p", Limit: l},
			throttle.Policy{Key: "c", Limit: limit(t, "100/s", 1), Parent: "p", Weight: 2},
		)
		s := newSimulation(t, d)
		n := d.most(90)
		s.enqueue(entries("p", ids(n)...)...)
		s.enqueue(entries("c", ids(2*n)...)...)
		from := s.now
		s.drain(time.Minute)
		s.keepsParent(l)
		own, child := s.slots("p", from), s.slots("c", from)
		require.Len(t, own, n)
		require.InDelta(t, float64(3*n)/30, own[n-1].Seconds(), 0.5, "they end together")
		require.InDelta(t, float64(3*n)/30, child[2*n-1].Seconds(), 0.5)
	})
}

// Nothing is left of a family that is idle.
func TestIdleFamilyLeavesNothingBehind(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t,
			throttle.Policy{Key: "p", Limit: limit(t, "20/s", 1), Quotas: []throttle.Quota{{Limit: 100, Per: time.Minute, Window: throttle.Sliding}}},
			throttle.Policy{Key: "c/*", Limit: limit(t, "10/s", 1), Parent: "p", Minimum: throttle.Rate{Cost: 1, Per: time.Second}},
		)
		before := withoutReplies(d.names(t))
		s := newSimulation(t, d)
		for round := range 3 {
			for i := range 5 {
				s.enqueue(entries(fmt.Sprintf("c/%d", i), fmt.Sprint(round))...)
			}
			s.drain(time.Minute)
		}
		d.set(t, s.now.Add(5*time.Minute))
		require.Subset(t, before, withoutReplies(d.names(t)))
		s.keepsParent(limit(t, "20/s", 1))
	})
}

// Workers that are away leave a bounded number of jobs outside, for the parent too.
func TestWhatIsOutStaysWithinTheParentsLead(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		l := limit(t, "50/s", 2)
		d.family(t, throttle.Policy{Key: "p", Limit: l}, throttle.Policy{Key: "c/*", Limit: limit(t, "50/s", 5), Parent: "p"})
		s := newSimulation(t, d)
		for i := range 10 {
			s.enqueue(entries(fmt.Sprintf("c/%d", i), ids(d.most(100)/5)...)...)
		}
		s.stop()
		s.forward(5 * time.Second)
		out := 0
		for _, jobs := range s.released {
			out += len(jobs)
		}
		require.LessOrEqual(t, out, int(math.Ceil(s.lead.Seconds()*50))+2)
		s.start()
		s.drain(time.Minute)
		s.keepsParent(l)
	})
}

// What was foreseen at an old rate does not hold a family at the new one.
func TestRaisedRateOfAParentIsFeltAtOnce(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		child := throttle.Policy{Key: "c", Limit: limit(t, "1000/s", 10), Parent: "p"}
		d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "1/h", 1)}, child)
		s := newSimulation(t, d)
		s.enqueue(entries("c", ids(20)...)...)
		s.forward(time.Minute)
		require.Len(t, s.departures, 1)
		s.call(d.scripts.Policies(0, 1, rules("p", policyText(100, time.Second, 1, 100), "c", throttle.PolicyText(child))))
		s.drain(time.Second)
	})
}

// What is on its way counts with the parent that its key has, also when that changes.
func TestChangedParentLeavesNothingWithTheOldOne(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		with := func(parent string) []string {
			return []string{
				"p", policyText(10, time.Second, 1, 100), "q", policyText(10, time.Second, 1, 100),
				"c", throttle.PolicyText(throttle.Policy{Key: "c", Limit: limit(t, "100/s", 50), Parent: parent}),
				"c2", throttle.PolicyText(throttle.Policy{Key: "c2", Limit: limit(t, "100/s", 50), Parent: "p"}),
			}
		}
		d.run(t, d.scripts.Policies(0, 1, rules(with("p")...)))
		s := newSimulation(t, d)
		s.enqueue(entries("c", ids(10)...)...)
		s.stop()
		s.forward(time.Second)
		require.NotEmpty(t, s.released["c"])
		s.call(d.scripts.Policies(0, 1, rules(with("q")...)))
		s.forward(time.Second)
		s.start()
		s.enqueue(entries("c2", ids(10)...)...)
		s.drain(3 * time.Second)
	})
}

// A minimum that is taken away is no claim any more.
func TestRemovedMinimumIsNoClaim(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		with := func(least throttle.Rate) []string {
			return []string{
				"p", policyText(20, time.Second, 1, 100),
				"x", throttle.PolicyText(throttle.Policy{Key: "x", Limit: limit(t, "100/s", 1), Parent: "p", Minimum: least}),
				"y", throttle.PolicyText(throttle.Policy{Key: "y", Limit: limit(t, "100/s", 1), Parent: "p"}),
			}
		}
		d.run(t, d.scripts.Policies(0, 1, rules(with(throttle.Rate{Cost: 5, Per: time.Second})...)))
		s := newSimulation(t, d)
		for _, key := range []string{"x", "y"} {
			s.enqueue(entries(key, ids(60)...)...)
		}
		s.forward(time.Second)
		s.call(d.scripts.Policies(0, 1, rules(with(throttle.Rate{})...)))
		s.forward(500 * time.Millisecond)
		from := s.now
		s.forward(2 * time.Second)
		shares, _ := s.shares(from)
		require.InDelta(t, 0.5, shares["y"], 0.06)
	})
}

// A root's own jobs leave whatever becomes of those below it.
func TestOwnJobsOfARootAreNotForgotten(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for early := 55 * time.Millisecond; early < 100*time.Millisecond; early += 5 * time.Millisecond {
			d.reset(t)
			d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "1/s", 1)},
				throttle.Policy{Key: "m", Limit: limit(t, "100/s", 1), Parent: "p"},
				throttle.Policy{Key: "c", Limit: limit(t, "100/s", 1), Parent: "m"})
			s := newSimulation(t, d)
			s.poll = time.Hour
			s.control(script.Pause, time.Time{}, "m")
			s.enqueue(entries("p", ids(10)...)...)
			s.forward(3*time.Second - early)
			s.enqueue(entries("c", "1")...)
			s.forward(7*time.Second + early)
			require.Len(t, s.jobs("p"), 10, "enqueued %v before a slot", early)
		}
	})
}

// A parent that takes no new jobs has its children take none.
func TestDrainReachesChildren(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "1/s", 1)}, throttle.Policy{Key: "c", Limit: limit(t, "100/s", 1), Parent: "p"})
		s := newSimulation(t, d)
		s.control(script.Drain, time.Time{}, "p")
		placed := s.call(d.scripts.Enqueue(0, -1, entries("c", "1"))).Placed(1)
		require.Equal(t, script.Draining, placed.Places[0].State)
	})
}

// A release takes a bounded number of steps through a family, and the next goes on.
func TestManyChildrenAreTakenInSteps(t *testing.T) {
	d := drivenRedis(t)
	d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "1000/s", 1)}, throttle.Policy{Key: "c/*", Limit: limit(t, "1/s", 1), Parent: "p"})
	s := newSimulation(t, d)
	const children = 4000
	for i := range children {
		s.enqueue(entries(fmt.Sprintf("c/%d", i), "1", "2")...)
	}
	s.forward(2 * time.Second)
	s.control(script.Pause, time.Time{}, "c/*")
	s.forward(2 * time.Second)
	s.control(script.Resume, time.Time{}, "c/*")
	from := s.now
	s.drain(time.Minute)
	require.Less(t, s.now.Sub(from), 8*time.Second, "the parent stays busy")
	require.Less(t, d.commands(t), 2*children, "a step is a few hundred of them, with some twenty commands for each")
	s.keepsParent(limit(t, "1000/s", 1))
}

// A child that leaves its parent with jobs on their way lets the parent go on, and so
// does a parent that becomes the child of its child.
func TestParentsGoOnWhenTheirChildrenLeave(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		text := func(key, rate, parent string) []string {
			return []string{key, throttle.PolicyText(throttle.Policy{Key: key, Limit: limit(t, rate, 5), Parent: parent})}
		}
		set := func(s *simulation, policies ...[]string) {
			var pairs []string
			for _, p := range policies {
				pairs = append(pairs, p...)
			}
			s.call(d.scripts.Policies(0, 1, rules(pairs...)))
		}
		t.Run("leaves", func(t *testing.T) {
			d.reset(t)
			s := newSimulation(t, d)
			s.poll = 1000 * time.Hour
			set(s, text("g", "100/s", ""), []string{"p", throttle.PolicyText(throttle.Policy{Key: "p", Limit: limit(t, "1/s", 1), Parent: "g"})}, text("z", "100/s", "p"))
			s.stop()
			s.enqueue(entries("z", "1")...)
			s.enqueue(entries("p", ids(5)...)...)
			s.forward(2 * time.Second)
			set(s, text("g", "100/s", ""), []string{"p", throttle.PolicyText(throttle.Policy{Key: "p", Limit: limit(t, "1/s", 1), Parent: "g"})}, text("z", "100/s", ""))
			s.forward(time.Second)
			s.start()
			s.drain(time.Minute)
		})
		t.Run("turns round", func(t *testing.T) {
			d.reset(t)
			s := newSimulation(t, d)
			s.poll = 1000 * time.Hour
			set(s, text("a", "10/s", ""), text("b", "10/s", "a"))
			s.stop()
			s.enqueue(entries("a", ids(10)...)...)
			s.enqueue(entries("b", ids(10)...)...)
			s.forward(time.Second)
			set(s, text("b", "10/s", ""), text("a", "10/s", "b"))
			s.forward(time.Second)
			s.start()
			s.drain(time.Minute)
		})
	})
}

// What leaves of a parent's daily quota a moment before midnight, for the day to come, is
// still counted when the parent is idle then.
func TestQuotaOfAnIdleParentIsKeptForTheWindowToCome(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.set(t, time.Date(2026, 3, 1, 23, 50, 0, 0, time.UTC))
		d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "100/s", 100), Quotas: []throttle.Quota{{Limit: 5, Per: 24 * time.Hour, Window: throttle.Fixed}}},
			throttle.Policy{Key: "c", Limit: limit(t, "100/s", 100), Parent: "p"})
		s := newSimulation(t, d)
		s.poll = time.Hour
		s.enqueue(entries("c", ids(10)...)...)
		s.forward(time.Hour)
		require.Len(t, s.departures, 10)
		s.enqueue(entries("c", "late-1", "late-2", "late-3")...)
		s.forward(12 * time.Hour)
		require.Equal(t, map[string]int64{"2026-03-01": 5, "2026-03-02": 5}, s.perDay("c", time.UTC))
	})
}
