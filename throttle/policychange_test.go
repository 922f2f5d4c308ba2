package throttle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// change sets the default policy as a simulation goes on: its schedulers hear of it.
func (s *simulation) change(l throttle.Limit, max int) {
	s.call(s.d.policies(throttle.AnyKey, policyText(l.Rate, l.Period, l.Burst, max)))
}

// Jobs that wait take the new pace at once, not after an interval of the old one; what
// has leaked so far counts at the old rate.
func TestRaisedLimitReachesJobsThatWait(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/10m", 1)
		s.latency = func() time.Duration { return 0 }
		q, from := d.queue(t), s.now
		s.enqueue(entries("k", ids(11)...)...)
		s.forward(time.Minute)
		s.change(limit(t, "1/2m", 1), 100)
		job, err := q.Job(t.Context(), "k", "000002")
		require.NoError(t, err)
		next := 60*time.Second + 108*time.Second // nine tenths of one cost unit are left
		require.WithinDuration(t, from.Add(next), job.EstimatedDeparture, rounding)
		s.drain(time.Hour)
		require.Len(t, s.departures, 11)
		inDelta(t, func(i int) time.Duration { return next + time.Duration(i)*2*time.Minute }, s.slots("k", from)[1:])
	})
}

func TestLoweredLimitHoldsAtOnce(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "100/s", 10)
		s.enqueue(entries("k", ids(100)...)...)
		s.forward(500 * time.Millisecond)
		s.change(limit(t, "1/s", 1), 100)
		// What has its slot keeps it, and those on their way find theirs further off.
		s.forward(s.lead)
		before, from := len(s.departures), s.now
		s.forward(20 * time.Second)
		require.LessOrEqual(t, len(s.departures)-before, 21)
		s.change(limit(t, "100/s", 10), 100)
		s.drain(10 * time.Second)
		require.Greater(t, s.slots("k", from)[before], time.Duration(0))
		require.ElementsMatch(t, ids(100), s.jobs("k"))
	})
}

// A key with as many jobs in flight as it may have feels a raised maximum at once.
func TestRaisedMaxInFlightIsFeltAtOnce(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := newSimulation(t, d)
		s.poll, s.work = 1000*time.Hour, time.Minute
		s.change(limit(t, "100/s", 100), 1)
		s.enqueue(entries("k", ids(10)...)...)
		s.forward(time.Second)
		require.Len(t, s.departures, 1)
		s.change(limit(t, "100/s", 100), 5)
		s.forward(time.Second)
		require.Len(t, s.departures, 5)
		s.drain(time.Hour)
		require.Equal(t, ids(10), s.jobs("k"))
	})
}

// What is in a bucket counts against a burst that was made smaller, too.
func TestLoweredBurstIsNotExceededByOldCredit(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := newSimulation(t, d)
		s.change(limit(t, "1/m", 1000), 1000)
		s.enqueue(entries("k", "first")...)
		s.drain(time.Minute)
		s.change(limit(t, "1/m", 10), 1000)
		s.enqueue(entries("k", ids(50)...)...)
		s.forward(30 * time.Second)
		require.Len(t, s.departures, 10, "the first is still in the bucket")
	})
}

func TestOneADay(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/d", 1)
		s.poll = 1000 * time.Hour
		s.enqueue(entries("k", ids(4)...)...)
		from := s.now
		s.drain(100 * 24 * time.Hour)
		inDelta(t, func(i int) time.Duration { return 2*time.Millisecond + time.Duration(i)*24*time.Hour }, s.slots("k", from))
		// An idle bucket is kept until it has leaked.
		s.forward(24*time.Hour - time.Second)
		require.NotZero(t, d.run(t, d.scripts.Stat(0, "k")).Counts().MicroLevel)
	})
}
