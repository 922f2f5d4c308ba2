package throttle_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// withinEstimate is how far an estimate may be off: one part in a hundred of the wait, or
// a quarter of a second.
func withinEstimate(wait time.Duration) time.Duration { return max(wait/100, 250*time.Millisecond) }

// foretold is when the jobs of a key leave, as they are looked up now.
func (s *simulation) foretold(key string, ids ...string) map[string]time.Time {
	out := make(map[string]time.Time)
	s.do(func(q *throttle.Queue) {
		for _, id := range ids {
			info, err := q.Job(context.Background(), key, id)
			require.NoError(s.t, err)
			out[id] = info.EstimatedDeparture
		}
	})
	return out
}

// cameTrue checks what was foretold at an instant against what happened.
func (s *simulation) cameTrue(key string, at time.Time, foretold map[string]time.Time) {
	seen := 0
	for _, d := range s.departures {
		if want, ok := foretold[d.job]; ok && d.Key == key && d.At.After(at) {
			seen++
			wait := d.At.Sub(at)
			require.InDelta(s.t, wait.Seconds(), want.Sub(at).Seconds(), withinEstimate(wait).Seconds(), "job %s of key %s", d.job, key)
		}
	}
	require.Equal(s.t, len(foretold), seen)
}

// every is every nth of the ids from 1 to last.
func every(n, first, last int) (list []string) {
	for i := first; i <= last; i += n {
		list = append(list, ids(last)[i-1])
	}
	return list
}

// A long backlog leaves when its receipts said, and when look-ups along the way said.
func TestReceiptsForetellDepartures(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		n := d.most(5000)
		s := paced(t, d, "50/s", 10)
		jobs := make([]throttle.Job, n)
		for i, id := range ids(n) {
			jobs[i] = throttle.Job{Key: "k", ID: id, Type: "t"}
		}
		receipts := s.put(jobs...)
		began := s.now
		told := make(map[string]time.Time)
		for _, r := range receipts {
			told[r.ID] = r.EstimatedDeparture
		}
		s.forward(time.Duration(n/3) * 20 * time.Millisecond)
		later := s.now
		lookedUp := s.foretold("k", every(max(1, n/50), n/2, n)...)
		s.drain(10 * time.Minute)
		s.cameTrue("k", began.Add(-time.Second), told)
		s.cameTrue("k", later, lookedUp)
	})
}

// What is looked up within two seconds of a change holds: of a pause, of a rate, and of
// the edge of a quota.
func TestEstimatesFollowChanges(t *testing.T) {
	d := drivenRedis(t)
	const n = 3000
	p := throttle.Policy{
		Key: "*", Limit: limit(t, "50/s", 1), MaxInFlight: 1000,
		Quotas: []throttle.Quota{{Limit: n / 3, Per: 2 * time.Minute, Window: throttle.Fixed}},
	}
	d.set(t, time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC))
	d.policy(t, p)
	s := newSimulation(t, d)
	s.enqueue(entries("k", ids(n)...)...)
	s.forward(time.Duration(n/20) * 20 * time.Millisecond)
	probe := func() (at time.Time, told map[string]time.Time) {
		left := len(s.departures)
		return s.now, s.foretold("k", every(max(1, n/40), min(n, left+2+n/50), n)...)
	}

	s.control(script.Pause, time.Time{}, "k")
	s.forward(time.Second)
	_, told := probe()
	for id, at := range told {
		require.True(t, at.IsZero(), "nobody knows when job %s leaves", id)
	}
	s.forward(20 * time.Second)
	s.control(script.Resume, time.Time{}, "k")
	s.forward(time.Second)
	resumed, afterPause := probe()
	end := s.now.Add(time.Duration(n/20) * 20 * time.Millisecond)
	s.until(end)
	s.cameTrueUntil("k", resumed, end, afterPause)

	p.Limit = limit(t, "150/s", 1)
	s.call(d.policies("*", throttle.PolicyText(p)))
	s.forward(time.Second)
	changed, afterChange := probe()
	s.drain(time.Hour)
	s.cameTrue("k", changed, afterChange)
}

// cameTrueUntil is cameTrue for what has left by an instant.
func (s *simulation) cameTrueUntil(key string, at, end time.Time, foretold map[string]time.Time) {
	due := make(map[string]time.Time)
	for _, d := range s.departures {
		if want, ok := foretold[d.job]; ok && d.Key == key {
			due[d.job] = want
		}
	}
	require.NotEmpty(s.t, due)
	s.cameTrue(key, at, due)
}

// Estimates hold for jobs of different costs, priorities, behind a line that is bound by
// its places in flight (but for a run, for nobody knows when the next one ends), and below
// a parent that siblings share.
func TestEstimatesOfMixedLines(t *testing.T) {
	d := drivenRedis(t)
	for name, c := range map[string]struct {
		policies []throttle.Policy
		work     time.Duration
		cost     int64
	}{
		"costs":     {policies: []throttle.Policy{{Key: "k", Limit: limit(t, "50/s", 20)}}, cost: 5},
		"in flight": {policies: []throttle.Policy{{Key: "k", Limit: limit(t, "100/s", 1), MaxInFlight: 5}}, work: time.Second, cost: 1},
		"ordered":   {policies: []throttle.Policy{{Key: "k", Limit: limit(t, "100/s", 1), Ordered: true}}, work: 200 * time.Millisecond, cost: 1},
		"siblings": {policies: []throttle.Policy{
			{Key: "p", Limit: limit(t, "30/s", 1)},
			{Key: "k", Limit: limit(t, "100/s", 1), Parent: "p", Weight: 2}, {Key: "sibling", Limit: limit(t, "100/s", 1), Parent: "p", Weight: 1},
		}, cost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d.reset(t)
			d.family(t, c.policies...)
			random := rand.New(rand.NewPCG(1, 2))
			s := newSimulation(t, d)
			s.t = t
			s.work = c.work
			const n = 1000
			for _, key := range []string{"k", "sibling"} {
				var jobs []throttle.Job
				for i := range n {
					jobs = append(jobs, throttle.Job{
						Key: key, ID: ids(n)[i], Type: "t", Cost: 1 + random.Int64N(c.cost), Priority: random.IntN(3),
					})
				}
				s.put(jobs...)
				if len(c.policies) < 3 {
					break
				}
			}
			s.forward(5 * time.Second)
			began := s.now
			q := d.queue(t)
			told := make(map[string]time.Time)
			for _, j := range pages(t, 1000, func(p throttle.Page) (throttle.JobPage, error) {
				return q.Jobs(context.Background(), "k", throttle.Waiting, p)
			}) {
				if j.Position%40 == 0 {
					for id, at := range s.foretold("k", j.ID) {
						told[id] = at
					}
				}
			}
			s.forward(20 * time.Second)
			seen := 0
			for _, dep := range s.departures {
				if want, ok := told[dep.job]; ok && dep.Key == "k" {
					seen++
					wait := dep.At.Sub(began)
					allowed := 0.03*wait.Seconds() + 0.25 + c.work.Seconds()
					if c.cost > 1 {
						// What lies ahead is taken as evenly spread: four times the standard deviation of
						// the sum of as many costs, each drawn from 1 to 5, at 50 a second.
						allowed += 4 * math.Sqrt(2*wait.Seconds()*50/3) / 50
					}
					require.InDelta(t, wait.Seconds(), want.Sub(began).Seconds(), allowed, "job %s", dep.job)
				}
			}
			require.Greater(t, seen, 1)
		})
	}
}

// A key tells when it will be empty.
func TestAKeyTellsWhenItWillBeEmpty(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		n := d.most(300)
		for i := range n {
			s.put(throttle.Job{Key: "k", ID: strconv.Itoa(i), Type: "t", Cost: int64(1 + i%3)})
		}
		s.forward(time.Second)
		k, err := d.queue(t).Key(context.Background(), "k")
		require.NoError(t, err)
		s.drain(time.Hour)
		require.WithinDuration(t, s.departures[len(s.departures)-1].At, k.Empty, time.Second)
	})
}
