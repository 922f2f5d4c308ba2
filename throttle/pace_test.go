package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// rounding is how far a slot may lie from its exact instant: the scripts round up to
// whole microseconds.
const rounding = time.Microsecond

// paced starts a simulation with one limit for all keys.
func paced(t *testing.T, d *driven, rate string, burst int64) *simulation {
	t.Helper()
	d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, rate, burst), MaxInFlight: 1000})
	return newSimulation(t, d)
}

// inDelta checks that got, got[i] of which belongs to want(i), is exact.
func inDelta(t *testing.T, want func(i int) time.Duration, got []time.Duration) {
	t.Helper()
	for i, at := range got {
		require.InDelta(t, want(i), at, float64(rounding), "job %d", i+1)
	}
}

func TestIntervalsDoNotDrift(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "3/s", 1)
		s.lead, s.told = 10*time.Second, 5*time.Second // so that one call takes several jobs
		s.latency = func() time.Duration { return 0 }
		n := d.most(10_801)
		s.enqueue(entries("k", ids(n)...)...)
		from := s.now
		s.drain(2 * time.Hour)
		slots := s.slots("k", from)
		require.Len(t, slots, n) // in an hour and at its last instant: 10 801
		inDelta(t, func(i int) time.Duration { return time.Duration(i) * time.Second / 3 }, slots)
		s.keepsLimit(limit(t, "3/s", 1), "k")
	})
}

func TestIdleSpellEarnsNoMoreThanTheBurst(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 2)
		s.enqueue(entries("k", "warm-1", "warm-2", "warm-3")...)
		s.drain(time.Minute)
		s.forward(30 * time.Second)
		s.departures = nil
		from := s.now
		s.enqueue(entries("k", ids(100)...)...)
		s.drain(time.Hour)
		slots := s.slots("k", from.Add(2*time.Millisecond)) // the way to the worker
		require.Len(t, slots, 100)
		inDelta(t, func(i int) time.Duration { return time.Duration(max(0, i-1)) * time.Second }, slots)
	})
}

func TestClockStepBackLocksNobodyOut(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 5)
		s.enqueue(entries("k", ids(200)...)...)
		s.forward(3 * time.Second) // the burst is used up
		for step := range 4 {
			s.forward(time.Duration(500+31*step) * time.Millisecond) // at any point of an interval
			before, from := len(s.departures), s.now
			s.jump(-time.Hour)
			s.forward(3 * time.Second)
			slots := s.slots("k", from)[before:]
			require.LessOrEqual(t, slots[0], 200*time.Millisecond)
			require.GreaterOrEqual(t, len(slots), 29)
		}
		s.keepsLimit(limit(t, "10/s", 5), "k")
	})
}

// The longer the interval the longer nobody touches the bucket, which then has only
// the last written instant to go by.
func TestClockStepBackDelaysASlowKeyLittle(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/10s", 1)
		s.latency = func() time.Duration { return 0 }
		from := s.now
		s.enqueue(entries("k", ids(5)...)...)
		s.enqueue(entries("busy", "a")...)
		s.forward(15900 * time.Millisecond)
		s.jump(-time.Hour)
		s.forward(35 * time.Second)
		for i, at := range s.slots("k", from) {
			exact := time.Duration(i) * 10 * time.Second
			require.GreaterOrEqual(t, at, exact)
			require.LessOrEqual(t, at, exact+s.poll, "job %d", i+1)
		}
		require.Len(t, s.slots("k", from), 5)
	})
}

func TestClockJumpAheadGivesNoMoreThanTheBurst(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 5)
		s.enqueue(entries("k", ids(d.most(500))...)...)
		s.forward(time.Second)
		before, from := len(s.departures), s.now
		s.jump(24 * time.Hour)
		s.forward(time.Minute)
		for i, at := range s.slots("k", from)[before:] {
			// One job has its slot already; five leave at once; then one each 100 ms.
			require.GreaterOrEqual(t, at, time.Duration(i-5)*100*time.Millisecond, "job %d after the jump", i+1)
		}
		require.Zero(t, s.open)
	})
}

func TestPaceDoesNotDependOnTheTurnOfTheSecond(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.set(t, d.now.Add(950*time.Millisecond))
		s := paced(t, d, "10/s", 1)
		s.latency = func() time.Duration { return 0 }
		from := s.now
		s.enqueue(entries("k", ids(60)...)...)
		s.forward(50 * time.Millisecond) // to the whole second
		require.Equal(t, s.now, s.now.Truncate(time.Second))
		s.forward(4950 * time.Millisecond)
		require.Len(t, s.slots("k", from), 51)
		inDelta(t, func(i int) time.Duration { return time.Duration(i) * 100 * time.Millisecond }, s.slots("k", from))
	})
}

func TestLimitOfOneAMinuteAndWhatItPromises(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/m", 1)
		s.latency = func() time.Duration { return 0 }
		q, from := d.queue(t), s.now
		s.enqueue(entries("k", ids(5)...)...)
		for sent := 1; sent <= 4; sent++ {
			s.until(from.Add(time.Duration(sent-1)*time.Minute + time.Second))
			require.Len(t, s.slots("k", from), sent)
			for i, id := range ids(5)[sent:] {
				job, err := q.Job(t.Context(), "k", id)
				require.NoError(t, err)
				require.Equal(t, throttle.Waiting, job.State)
				require.EqualValues(t, i+1, job.Position)
				require.WithinDuration(t, from.Add(time.Duration(sent+i)*time.Minute), job.EstimatedDeparture, rounding)
			}
		}
		s.drain(time.Hour)
		inDelta(t, func(i int) time.Duration { return time.Duration(i) * time.Minute }, s.slots("k", from))
	})
}

func TestGapsAreEvenAndNotOfWholeSeconds(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.latency = func() time.Duration { return 40 * time.Millisecond }
		s.enqueue(entries("k", ids(100)...)...)
		s.drain(time.Minute)
		slots := s.slots("k", s.departures[0].At)
		inDelta(t, func(i int) time.Duration { return time.Duration(i) * 100 * time.Millisecond }, slots)
		require.Equal(t, ids(100), s.jobs("k"))
	})
}

func TestHighRateIsReached(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1000/s", 100)
		s.told = 50 * time.Millisecond
		n := d.most(1000) * 10
		s.enqueue(entries("k", ids(n)...)...)
		from := s.now
		s.drain(time.Minute)
		slots := s.slots("k", from)
		require.Len(t, slots, n)
		require.InDelta(t, time.Duration(n-100)*time.Millisecond, slots[n-1], float64(10*time.Millisecond))
		s.keepsLimit(limit(t, "1000/s", 100), "k")
	})
}

func TestNoCatchUpAfterAnOutageOfEverything(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 5)
		s.lead, s.told = 10*time.Second, 5*time.Second
		n := d.most(7200)
		s.enqueue(entries("k", ids(n)...)...)
		s.down = true
		s.forward(time.Hour)
		s.down = false
		from := s.now
		s.drain(3 * time.Hour)
		slots := s.slots("k", from)
		require.Len(t, slots, n)
		for i, at := range slots {
			require.GreaterOrEqual(t, at, time.Duration(i-4)*time.Second, "job %d", i+1)
		}
		require.InDelta(t, time.Duration(n-5)*time.Second, slots[n-1], float64(s.poll+10*time.Millisecond))
		require.Equal(t, ids(n), s.jobs("k"))
	})
}

func TestNoCatchUpAfterTheWorkersStoodStill(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "100/s", 1)
		s.enqueue(entries("k", ids(d.most(2000)+100)...)...)
		s.forward(500 * time.Millisecond)
		s.stop()
		s.forward(5 * time.Second) // less than a lease
		require.LessOrEqual(t, len(s.released["k"])-len(s.departures), 11, "jobs on their way: lead × rate + burst")
		s.start()
		s.drain(time.Minute)
		s.keepsLimit(limit(t, "100/s", 1), "k")
	})
}

func TestLookingAtAnEmptyKeySpendsNothing(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "5/m", 5)
		s.enqueue(entries("k", "first")...)
		s.drain(time.Minute)
		s.forward(10 * time.Minute)
		require.GreaterOrEqual(t, s.releases, 20) // it was looked at all the time
		s.departures = nil
		from := s.now
		s.enqueue(entries("k", ids(5)...)...)
		s.forward(200 * time.Millisecond)
		require.Len(t, s.slots("k", from), 5)
	})
}

func TestJobDearerThanTheBurstLeavesIntoDebt(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 5)
		s.latency = func() time.Duration { return 0 }
		jobs := entries("k", "dear", "cheap")
		jobs[0].Cost = 6
		from := s.now
		s.enqueue(jobs...)
		s.drain(time.Minute)
		inDelta(t, func(i int) time.Duration { return time.Duration(i) * 2 * time.Second }, s.slots("k", from))
	})
}

func TestSeveralSchedulersKeepOneLimit(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 10)
		s.schedulers = 3
		n := d.most(400)
		s.enqueue(entries("k", ids(n)...)...)
		s.drain(time.Hour)
		require.Len(t, s.departures, n)
		require.Equal(t, ids(n), s.released["k"])
		s.keepsLimit(limit(t, "10/s", 10), "k")
	})
}

// A blocked key may cost no more than the polling of its shard does anyway, but for a
// look or two at each slot.
func TestBlockedKeyIsLeftAlone(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "30/h", 1)
		s.forward(20 * time.Minute)
		idle := s.releases
		s.enqueue(entries("k", ids(d.most(1000))...)...)
		s.forward(20 * time.Minute)
		blocked := s.releases - idle
		require.GreaterOrEqual(t, len(s.departures), 9)
		require.LessOrEqual(t, blocked-idle, 3*len(s.departures))
	})
}

func TestJobOfAnotherKeyDoesNotWait(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		slow := policyText(1, time.Minute, 1, 100)
		fast := policyText(100, time.Second, 10, 100)
		d.run(t, d.policies("slow", slow, "fast", fast))
		s := newSimulation(t, d)
		s.enqueue(entries("slow", ids(d.most(1000)*10)...)...)
		s.enqueue(entries("fast", ids(10)...)...)
		s.forward(500 * time.Millisecond)
		require.Len(t, s.jobs("fast"), 10)
		require.Len(t, s.jobs("slow"), 1)
	})
}
