package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/internal/script"
)

// upTo fails every attempt before the last and has it tried again at once.
func upTo(attempts int64) func(departure) (string, time.Duration) {
	return func(d departure) (string, time.Duration) {
		if d.attempt < attempts {
			return script.Retry, 0
		}
		return script.Dead, 0
	}
}

func TestRetriesLeaveUnderTheLimitLikeEverythingElse(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.end = upTo(3)
		from := s.now
		s.enqueue(entries("k", ids(10)...)...)
		s.drain(time.Hour)
		slots := s.slots("k", from)
		require.Len(t, slots, 30)
		require.GreaterOrEqual(t, slots[29], 29*time.Second)
		s.keepsLimit(limit(t, "1/s", 1), "k")
		_, _, letters := d.run(t, d.scripts.Ended(0, script.Dead, "", "", "", 100)).Letters()
		require.Len(t, letters, 10)
	})
}

func TestDeferralSpendsNoAttempt(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 2)
		s.end = upTo(3)
		d.run(t, d.scripts.Enqueue(0, -1, entries("k", "before", "deferred")))
		for i := range 100 {
			d.advance(t, time.Second)
			jobs := holds(released(d.run(t, d.scripts.Release(0, releasing(time.Duration(i).String())))))
			require.Len(t, jobs, 2)
			if i%2 == 0 { // it never reached a worker
				require.Equal(t, []bool{true, true}, d.run(t, d.scripts.Finish(0, lead, ends(script.Return, jobs))).Held())
				continue
			}
			// It reached one that would have to wait too long, since others left meanwhile:
			// what is released is forgotten by a worker with a shorter lead.
			_, slots := d.run(t, d.scripts.Depart(0, lead, lease, time.Duration(i).String(), jobs[:1])).Slots()
			require.Equal(t, script.Go, slots[0].Status)
			going := departed(jobs[:1], slots)
			_, again := d.run(t, d.scripts.Depart(0, lead, lease, time.Duration(i).String()+"b", going)).Slots()
			_, slots = d.run(t, d.scripts.Depart(0, 1, lease, time.Duration(i).String()+"c", jobs[1:])).Slots()
			require.Equal(t, script.Parked, slots[0].Status)
			d.run(t, d.scripts.Finish(0, lead, ends(script.Return, departed(going, again))))
		}
		s.now = d.now
		s.open = 2
		s.forward(time.Minute)
		var attempts []int64
		for _, d := range s.departures {
			if d.job == "deferred" {
				attempts = append(attempts, d.attempt)
			}
		}
		require.Equal(t, []int64{1, 2, 3}, attempts)
	})
}

func TestRetryWaitsForItsDelayAndKeepsItsPlace(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.latency = func() time.Duration { return 0 }
		s.end = func(d departure) (string, time.Duration) {
			if d.job == "000001" && d.attempt == 1 {
				return script.Retry, time.Second
			}
			return script.Done, 0
		}
		from := s.now
		s.enqueue(entries("k", ids(30)...)...)
		s.drain(time.Minute)
		for i, id := range s.jobs("k")[1:] {
			if id == "000001" {
				// Ahead of all that were waiting behind it, at the first free slot.
				require.InDelta(t, time.Second+s.lead, s.slots("k", from)[i+1], float64(s.lead+rounding))
			}
		}
		s.keepsLimit(limit(t, "10/s", 1), "k")
	})
}

// A line that is blocked because too many jobs are in flight was forgotten until the
// delay of a retry was over: the bucket was armed, but only for the retry.
func TestDelayedJobDoesNotHideABlockedLine(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "100/s", 10)
		d.run(t, d.policies("*", policyText(100, time.Second, 10, 2)))
		s.poll, s.work = 1000*time.Hour, 10*time.Millisecond
		s.end = func(d departure) (string, time.Duration) {
			if d.attempt == 1 && d.job == "000001" {
				return script.Retry, 100 * time.Hour
			}
			return script.Done, 0
		}
		s.enqueue(entries("k", ids(20)...)...)
		s.forward(time.Minute)
		require.Len(t, s.departures, 20)
	})
}

func TestDelayedJobLeavesNoEarlierThanAsked(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "100/s", 10)
		from := s.now
		jobs := entries("k", "later", "past", "now")
		jobs[0].NotBefore = from.Add(5 * time.Second).UnixMicro()
		jobs[1].NotBefore = from.Add(-24 * time.Hour).UnixMicro()
		s.enqueue(jobs...)
		s.drain(time.Minute)
		require.Equal(t, []string{"past", "now", "later"}, s.jobs("k"))
		require.GreaterOrEqual(t, s.slots("k", from)[2], 5*time.Second)
		require.LessOrEqual(t, s.slots("k", from)[2], 5*time.Second+s.lead)
	})
}
