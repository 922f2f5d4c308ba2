package throttle_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

func stats(t *testing.T, d *driven) throttle.Stats {
	t.Helper()
	s, err := d.queue(t).Stats(context.Background())
	require.NoError(t, err)
	return s
}

// A job that waits longer than its TTL ends, wherever it stands in the line, and costs
// nothing.
func TestJobsExpireAndCostNothing(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.put(
			throttle.Job{Key: "k", ID: "1", Type: "t"},
			throttle.Job{Key: "k", ID: "2", Type: "t"},
			throttle.Job{Key: "k", ID: "short", Type: "t", TTL: 1500 * time.Millisecond},
			throttle.Job{Key: "k", ID: "4", Type: "t"},
			throttle.Job{Key: "k", ID: "long", Type: "t", TTL: time.Minute},
			throttle.Job{Key: "k", ID: "delayed", Type: "t", NotBefore: s.now.Add(time.Hour), TTL: time.Minute},
		)
		s.drain(2 * time.Minute)
		require.Equal(t, []string{"1", "2", "4", "long"}, s.jobs("k"))
		inDelta(t, func(i int) time.Duration { return time.Duration(i) * time.Second }, s.slots("k", s.departures[0].At))
		got := stats(t, d)
		require.EqualValues(t, 2, got.Totals.Expired)
		require.EqualValues(t, 4, got.Totals.Done)
		require.Zero(t, got.Waiting+got.Delayed+got.InFlight)
		d.advance(t, 2*time.Minute)
		for _, name := range d.names(t) {
			require.NotRegexp(t, `:k$|expiry`, name, "nothing is left of the key")
		}
	})
}

// A receipt does not promise a departure to a job that expires before it, and neither does
// a look-up.
func TestReceiptsTellOfJobsThatExpireFirst(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		all := throttle.Policy{Limit: limit(t, "1/s", 1), MaxInFlight: 1000}
		short := all
		short.JobTTL = 30 * time.Second
		d.run(t, d.policies("*", throttle.PolicyText(all), "short", throttle.PolicyText(short)))
		s := newSimulation(t, d)
		s.control(script.Pause, time.Time{}, "paused")
		s.down = true
		s.put(append(numbered("k", 60), numbered("short", 60)...)...)
		now := s.now
		past := now.Add(-time.Hour)
		for _, c := range []struct {
			name    string
			job     throttle.Job
			expires time.Time
			first   bool
		}{
			{"nothing", throttle.Job{Key: "k"}, time.Time{}, false},
			{"long TTL", throttle.Job{Key: "k", TTL: time.Hour}, now.Add(time.Hour), false},
			{"TTL in a long line", throttle.Job{Key: "k", TTL: time.Second}, now.Add(time.Second), true},
			{"TTL in a line, but urgent", throttle.Job{Key: "k", TTL: time.Second, Priority: 9}, now.Add(time.Second), false},
			{"delay beyond the TTL", throttle.Job{Key: "free", TTL: time.Minute, NotBefore: now.Add(time.Hour)}, now.Add(time.Minute), true},
			{"past deadline", throttle.Job{Key: "free", Deadline: past}, past, true},
			{"past deadline, no departure known", throttle.Job{Key: "paused", Deadline: past}, past, true},
			{"deadline, no departure known", throttle.Job{Key: "paused", Deadline: now.Add(time.Hour)}, now.Add(time.Hour), false},
			{"deadline before the end of the TTL", throttle.Job{Key: "k", TTL: time.Hour, Deadline: now.Add(40 * time.Second)}, now.Add(40 * time.Second), true},
			{"TTL of the policy", throttle.Job{Key: "short"}, now.Add(30 * time.Second), true},
			{"TTL in place of the policy's", throttle.Job{Key: "short", TTL: time.Hour}, now.Add(time.Hour), false},
		} {
			c.job.ID, c.job.Type = "x", "t"
			r := s.put(c.job)[0]
			require.Equal(t, c.first, r.ExpiresFirst, c.name)
			info, err := d.queue(t).Job(ctx, c.job.Key, "x")
			require.NoError(t, err)
			require.Equal(t, c.first, info.ExpiresFirst, c.name)
			if c.expires.IsZero() {
				require.Zero(t, r.Expires, c.name)
			} else {
				require.WithinDuration(t, c.expires, r.Expires, time.Millisecond, c.name)
			}
			require.WithinDuration(t, info.Expires, r.Expires, time.Millisecond, c.name)

			again := s.put(c.job)[0]
			require.True(t, again.Duplicate, c.name)
			require.Zero(t, again.Expires, "%s: of one that was there only a look-up tells", c.name)
			s.do(func(q *throttle.Queue) {
				_, err = q.Cancel(ctx, c.job.Key, "x")
				require.NoError(t, err)
			})
			s.open--
		}
	})
}

// The policy's TTL is for jobs that name none; a job that has begun does not expire.
func TestPolicyTTLIsForTheFirstAttempt(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/s", 1), MaxInFlight: 10, JobTTL: 2500 * time.Millisecond})
		s := newSimulation(t, d)
		s.end = func(dep departure) (string, time.Duration) {
			if dep.job == "1" && dep.attempt == 1 {
				return script.Retry, 10 * time.Second
			}
			return script.Done, 0
		}
		s.put(throttle.Job{Key: "k", ID: "1", Type: "t"}, throttle.Job{Key: "k", ID: "2", Type: "t"},
			throttle.Job{Key: "k", ID: "3", Type: "t"}, throttle.Job{Key: "k", ID: "4", Type: "t"},
			throttle.Job{Key: "k", ID: "patient", Type: "t", TTL: time.Hour})
		s.drain(time.Minute)
		require.Equal(t, []string{"1", "2", "3", "patient", "1"}, s.jobs("k"))
		require.EqualValues(t, 1, stats(t, d).Totals.Expired)
	})
}

// No attempt begins after a deadline: a job that had none expires, one that had is dead.
func TestDeadlinesEndJobs(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.end = func(dep departure) (string, time.Duration) {
			switch dep.job {
			case "again":
				return script.Retry, 3 * time.Second
			case "late again":
				return script.Retry, time.Hour
			}
			return script.Done, 0
		}
		end := s.now.Add(5 * time.Second)
		s.control(script.Pause, time.Time{}, "other")
		s.put(
			throttle.Job{Key: "k", ID: "again", Type: "t", Deadline: end},
			throttle.Job{Key: "other", ID: "blocked", Type: "t", Deadline: end},
		)
		s.forward(10 * time.Second)
		// Attempts at 0 s and 3 s; the next would have been at 6 s.
		require.Equal(t, []string{"again", "again"}, s.jobs("k"))
		info, err := d.queue(t).Job(context.Background(), "k", "again")
		require.NoError(t, err)
		require.Equal(t, throttle.Dead, info.State)
		require.Equal(t, "its deadline is before the next attempt: because of this", info.Reason)
		require.Equal(t, 2, info.Attempts)
		_, err = d.queue(t).Job(context.Background(), "other", "blocked")
		require.ErrorIs(t, err, throttle.ErrNoJob)
		require.EqualValues(t, 1, stats(t, d).Totals.Expired)
		require.EqualValues(t, 1, stats(t, d).Totals.Dead)
	})
}

// A job that was released just before it expires does not depart after that.
func TestAJobOnItsWayExpiresToo(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.stop()
		s.put(throttle.Job{Key: "k", ID: "1", Type: "t", TTL: time.Second})
		s.forward(2 * time.Second)
		s.start()
		s.drain(10 * time.Second)
		require.Empty(t, s.departures)
		require.EqualValues(t, 1, stats(t, d).Totals.Expired)
	})
}

// A deadline is kept for the worker, too: its context ends then.
func TestPermitsTellTheDeadline(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	handed := handedOver(t, q)
	end := time.Now().Add(time.Hour)
	_, err := q.EnqueueMany(t.Context(), []throttle.Job{{Key: "a", ID: "1", Type: "t", Deadline: end}, {Key: "b", ID: "1", Type: "t"}})
	require.NoError(t, err)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	for range 2 {
		h := <-handed
		permits, err := p.Depart(t.Context(), time.Minute, p.NewToken(), []throttle.Hold{h})
		require.NoError(t, err)
		if h.Key == "a" {
			require.WithinDuration(t, end, permits[0].Deadline, time.Second)
		} else {
			require.True(t, permits[0].Deadline.IsZero())
		}
	}
}

// The hook is told of each job that expired, with what it carried.
func TestExpiryIsToldTo(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	require.NoError(t, q.Pause(t.Context(), "k"))
	var mu sync.Mutex
	told := make(map[string]string)
	runScheduler(t, q, &courier{}, throttle.SchedulerConfig{OnExpired: func(_ context.Context, j throttle.Job) {
		mu.Lock()
		defer mu.Unlock()
		told[j.Key+" "+j.ID] = string(j.Payload)
	}})
	_, err := q.EnqueueMany(t.Context(), []throttle.Job{
		{Key: "k", ID: "1", Type: "t", Payload: []byte("one"), TTL: 50 * time.Millisecond},
		{Key: "k", ID: "2", Type: "t", Payload: []byte("two"), TTL: time.Hour},
	})
	require.NoError(t, err)
	eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(told) > 0
	}, "nothing expired")
	require.Equal(t, map[string]string{"k 1": "one"}, told)
}

// Instants far off are stored as they are or refused, never wrapped; past ones are now.
func TestFarInstantsNeverWrap(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 10)
		s.put(
			throttle.Job{Key: "k", ID: "month", Type: "t", NotBefore: s.now.AddDate(0, 0, 30)},
			throttle.Job{Key: "k", ID: "century", Type: "t", NotBefore: s.now.AddDate(100, 0, 0)},
			throttle.Job{Key: "k", ID: "past", Type: "t", NotBefore: s.now.AddDate(0, 0, -1)},
		)
		s.forward(time.Minute)
		require.Equal(t, []string{"past"}, s.jobs("k"))
		info, err := d.queue(t).Job(context.Background(), "k", "century")
		require.NoError(t, err)
		require.Equal(t, s.now.Add(-time.Minute).AddDate(100, 0, 0).UnixMicro(), info.At.UnixMicro())
		for field, job := range map[string]throttle.Job{
			"not_before": {Key: "k", Type: "t", NotBefore: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)},
			"deadline":   {Key: "k", Type: "t", Deadline: time.Date(2262, 12, 31, 0, 0, 0, 0, time.UTC)},
		} {
			_, err := d.queue(t).Enqueue(context.Background(), job)
			var invalid *throttle.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, field, invalid.Field)
		}
	})
}

// A pause, or anything else that lasts, does not end jobs whose time is far off: they go
// back into the line, those with an attempt too.
func TestAPauseEndsNoJobBeforeItsTime(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		n := d.most(200)
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1000/s", 1), MaxInFlight: 1000, JobTTL: 24 * time.Hour})
		s := newSimulation(t, d)
		s.latency = func() time.Duration { return 30 * time.Millisecond }
		s.end = func(dep departure) (string, time.Duration) {
			if dep.attempt == 1 {
				return script.Retry, time.Millisecond
			}
			return script.Done, 0
		}
		for _, j := range numbered("k", n) {
			j.Deadline = s.now.Add(25 * time.Hour)
			s.put(j)
		}
		s.forward(50 * time.Millisecond)
		s.control(script.Pause, time.Time{}, "k")
		s.forward(time.Second)
		s.control(script.Resume, time.Time{}, "k")
		s.drain(time.Hour)
		require.Len(t, s.departures, 2*n)
		require.EqualValues(t, n, stats(t, d).Totals.Done)
	})
}

// Very large jobs that expire together hold nobody up: what their hook is told comes in
// small parts.
func TestLargeJobsExpireInParts(t *testing.T) {
	d := drivenRedis(t)
	d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/h", 1), MaxInFlight: 10})
	q := d.queue(t)
	for i := range 20 {
		_, err := q.Enqueue(context.Background(), throttle.Job{
			Key: "k", ID: strconv.Itoa(i), Type: "t", Payload: make([]byte, 200<<10), TTL: time.Second, NotBefore: d.now.Add(time.Hour),
		})
		require.NoError(t, err)
	}
	d.advance(t, time.Minute)
	told := 0
	for n := 1; told < 20; n++ {
		r := releasing(strconv.Itoa(n))
		r.Payloads = 256 << 10
		round := d.run(t, d.scripts.Release(0, r)).Released()
		require.Len(t, round.Expired, 2)
		if told += len(round.Expired); told < 20 {
			require.Zero(t, round.Due, "there are more")
		}
	}
	for _, j := range numbered("other", 100) {
		j.TTL, j.NotBefore = time.Second, d.now.Add(time.Hour)
		_, err := q.Enqueue(context.Background(), j)
		require.NoError(t, err)
	}
	d.advance(t, time.Minute)
	round := d.run(t, d.scripts.Release(0, releasing("none"))).Released()
	require.Len(t, round.Expired, 64)
	require.Empty(t, round.Expired[0].Job, "nobody asked")
}
