package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// drawFamily is a tree of policies up to four levels deep, parents before children.
func drawFamily(t *rapid.T) []throttle.Policy {
	var family []throttle.Policy
	depth := make(map[string]int)
	for i := range rapid.IntRange(2, 9).Draw(t, "members") {
		p := throttle.Policy{Key: fmt.Sprintf("m%d", i), Limit: drawLimit(t), MaxInFlight: 1000}
		if i > 0 && rapid.IntRange(0, 9).Draw(t, "has a parent") > 0 {
			parent := family[rapid.IntRange(0, i-1).Draw(t, "parent")]
			if depth[parent.Key] < throttle.MaxLevels-1 {
				p.Parent, p.Weight = parent.Key, rapid.IntRange(1, 5).Draw(t, "weight")
				depth[p.Key] = depth[parent.Key] + 1
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "has a quota") == 0 {
			p.Quotas = []throttle.Quota{{
				Limit:  rapid.Int64Range(1, 50).Draw(t, "quota"),
				Per:    rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute}).Draw(t, "per"),
				Window: rapid.SampledFrom([]throttle.Window{throttle.Sliding, throttle.Fixed}).Draw(t, "window"),
			}}
		}
		if rapid.IntRange(0, 5).Draw(t, "has few in flight") == 0 {
			p.MaxInFlight = 2
		}
		p.Ordered = rapid.IntRange(0, 5).Draw(t, "ordered") == 0
		family = append(family, p)
	}
	return family
}

// below tells which members' departures a member's limits count: its own and those of
// its descendants.
func below(family []throttle.Policy, root string) map[string]bool {
	in := map[string]bool{root: true}
	for _, p := range family { // parents come first
		if in[p.Parent] {
			in[p.Key] = true
		}
	}
	return in
}

// troubled is a simulation whose workers are late, miss slots and fail, and whose
// schedulers look at nothing unless told to: a forgotten wake-up would show.
func troubled(t *rapid.T, d *driven) *simulation {
	s := newSimulation(t, d)
	s.poll = 1000 * time.Hour
	s.schedulers = rapid.IntRange(1, 3).Draw(t, "schedulers")
	s.latency = between(t, 0, 150*time.Millisecond)
	s.work = between(t, 0, 2*time.Second)()
	seldom := rapid.SampledFrom([]bool{false, false, false, false, false, true})
	s.miss = func() bool { return seldom.Draw(t, "missed") }
	s.end = func(departure) (string, time.Duration) {
		what := rapid.SampledFrom([]string{script.Done, script.Done, script.Done, script.Dead, script.Return, script.Retry}).Draw(t, "end")
		return what, between(t, 0, 3*time.Second)()
	}
	return s
}

// Every limit and quota of every member holds for all that leaves below it, whatever
// jobs cost, however late workers are and however often jobs fail; and every job gets
// through.
func TestEveryLimitOfAFamilyHolds(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(10))
		rapid.Check(t, func(t *rapid.T) {
			d.reset(t)
			family := drawFamily(t)
			d.family(t, family...)
			s := troubled(t, d)
			maxCost := rapid.SampledFrom([]int64{1, 3}).Draw(t, "max cost")
			for _, p := range family {
				s.enqueue(drawJobs(t, p.Key, maxCost)...)
			}
			for range rapid.IntRange(0, 2).Draw(t, "troubles") {
				s.forward(between(t, 0, 3*time.Second)())
				if rapid.Bool().Draw(t, "workers stop") {
					s.stop()
					s.forward(between(t, 0, 9*time.Second)())
					s.start()
				} else {
					held := family[rapid.IntRange(0, len(family)-1).Draw(t, "held")].Key
					s.control(script.Pause, time.Time{}, held)
					s.forward(between(t, 0, 9*time.Second)())
					s.control(script.Resume, time.Time{}, held)
				}
			}
			s.drain(1000 * 24 * time.Hour)
			for _, p := range family {
				s.keepsPolicy(p, below(family, p.Key))
			}
		})
	})
}

// keepsPolicy checks what left of keys together against a limit and quotas. A charge
// that was given up when a slot was missed still counts, so the departures that were
// made only do not tell when a limit was broken; they are fewer.
func (s *simulation) keepsPolicy(p throttle.Policy, keys map[string]bool) {
	var events []departure
	for _, d := range s.departures {
		if keys[d.Key] {
			events = append(events, d)
		}
	}
	sortByTime(events)
	bucket := throttle.Bucket{Limit: p.Limit}
	rounding := 2 * float64(p.Limit.Rate) / float64(p.Limit.Period.Microseconds())
	for _, d := range events {
		before := bucket
		before.Leak(d.At)
		require.LessOrEqual(s.t, before.Level, max(0, float64(p.Limit.Burst-d.Cost))+rounding, "%s under %s at %v", d.ID, p.Key, d.At)
		bucket.Take(d.At, float64(d.Cost))
	}
	for _, q := range p.Quotas {
		most := q.Limit
		for i, d := range events {
			sum := int64(0)
			for j := i; j >= 0; j-- {
				if q.Window == throttle.Sliding && d.At.Sub(events[j].At) >= q.Per {
					break
				}
				if q.Window == throttle.Fixed && events[j].At.UnixMicro()/q.Per.Microseconds() != d.At.UnixMicro()/q.Per.Microseconds() {
					break
				}
				sum += events[j].Cost
			}
			require.LessOrEqual(s.t, sum, max(most, d.Cost), "%v of %s", q, p.Key)
		}
	}
}

// Every job gets through, whatever is changed while jobs wait and are under way: rates,
// parents, weights, minimums, quotas, holds, their places, and what runs turn out to cost.
func TestEveryJobGetsThroughWhateverChanges(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(10))
		rapid.Check(t, func(t *rapid.T) {
			d.reset(t)
			family := drawFamily(t)
			d.family(t, family...)
			s := troubled(t, d)
			s.cost = func(x departure) int64 { return rapid.Int64Range(0, 2*x.Cost).Draw(t, "true cost") }
			for _, p := range family {
				s.enqueue(drawJobs(t, p.Key, 3)...)
			}
			for range rapid.IntRange(1, 5).Draw(t, "changes") {
				s.forward(between(t, 0, 3*time.Second)())
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					s.stop()
					s.forward(between(t, 0, 9*time.Second)())
					s.start()
				case 1:
					held := family[rapid.IntRange(0, len(family)-1).Draw(t, "held")].Key
					s.control(script.Pause, time.Time{}, held)
					s.forward(between(t, 0, 9*time.Second)())
					s.control(script.Resume, time.Time{}, held)
				case 2:
					// A job is moved, or leaves past the limit. It may have ended, or never have been.
					what := rapid.SampledFrom([]string{script.ToFront, script.SetPriority, script.ReleaseNow}).Draw(t, "what")
					job := script.Ref{Key: rapid.SampledFrom(family).Draw(t, "moved").Key, ID: ids(9)[rapid.IntRange(0, 8).Draw(t, "job")]}
					s.call(d.scripts.Act(0, script.Acting{Lead: lead, What: what, Who: "who", Priority: rapid.IntRange(0, 9).Draw(t, "priority")}, []script.Ref{job}))
				case 3:
					s.control(script.CoolDown, s.now.Add(between(t, 0, 9*time.Second)()), "m*")
				default:
					var pairs []string
					for _, p := range drawFamily(t) {
						pairs = append(pairs, p.Key, throttle.PolicyText(p))
					}
					s.call(d.scripts.Policies(0, 1, rules(pairs...)))
				}
			}
			s.drain(100_000 * 24 * time.Hour)
		})
	})
}
