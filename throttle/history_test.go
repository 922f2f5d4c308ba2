package throttle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

func history(t *testing.T, d *driven, key string) throttle.History {
	t.Helper()
	h, err := d.queue(t).History(context.Background(), key)
	require.NoError(t, err)
	return h
}

// Every departure of a key that keeps a history is in it, and the policies that were in
// force; what missed its slot is in it once.
func TestHistoryTellsOfEveryDeparture(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		slow := throttle.Policy{Key: "*", Limit: limit(t, "10/s", 2), MaxInFlight: 100, History: 1000}
		fast := slow
		fast.Limit = limit(t, "20/s", 2)
		d.policy(t, slow)
		s := newSimulation(t, d)
		n := 0
		s.miss = func() bool { n++; return n%7 == 0 }
		s.end = upTo(2)
		s.enqueue(entries("k", ids(20)...)...)
		s.forward(2 * time.Second)
		s.call(d.policies("*", throttle.PolicyText(fast)))
		s.drain(time.Minute)

		h := history(t, d, "k")
		require.Len(t, h.Policies, 2)
		require.Equal(t, slow.Limit, h.Policies[0].Policy.Limit)
		require.Equal(t, fast.Limit, h.Policies[1].Policy.Limit)
		require.Len(t, h.Departures, len(s.departures))
		sortByTime(s.departures)
		for i, dep := range h.Departures {
			require.Equal(t, s.departures[i].At.UnixMicro(), dep.At.UnixMicro(), "departure %d", i)
		}
		v := h.Verify()
		require.Empty(t, v.Violations)
		require.Equal(t, 40, v.Departures)
		d.advance(t, 25*time.Hour)
		_, err := d.queue(t).History(context.Background(), "k")
		require.ErrorIs(t, err, throttle.ErrNoHistory)
	})
}

// A history is bounded; the policy in force is known though the entry that told of it is
// gone.
func TestHistoryIsBounded(t *testing.T) {
	d := drivenRedis(t)
	p := throttle.Policy{Key: "*", Limit: limit(t, "100/s", 1), MaxInFlight: 100, History: 100}
	d.policy(t, p)
	s := newSimulation(t, d)
	s.enqueue(entries("k", ids(1000)...)...)
	s.forward(5 * time.Second)
	h := history(t, d, "k")
	require.Less(t, len(h.Departures), 350)
	require.GreaterOrEqual(t, len(h.Departures), 100)
	require.Equal(t, p.Limit, h.Policies[0].Policy.Limit)
	require.Empty(t, h.Verify().Violations)

	p.Limit = limit(t, "50/s", 1)
	s.call(d.policies("*", throttle.PolicyText(p)))
	s.forward(time.Second)
	h = history(t, d, "k")
	require.Equal(t, []throttle.Limit{limit(t, "100/s", 1), limit(t, "50/s", 1)},
		[]throttle.Limit{h.Policies[0].Policy.Limit, h.Policies[1].Policy.Limit})
	require.Empty(t, h.Verify().Violations)
}

// A parent's history holds what its children do, and true costs are settled in it.
func TestHistoryOfParentsAndTrueCosts(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.family(t, throttle.Policy{Key: "p", Limit: limit(t, "20/s", 5), History: 1000},
			throttle.Policy{Key: "a", Limit: limit(t, "100/s", 10), Parent: "p"}, throttle.Policy{Key: "b", Limit: limit(t, "100/s", 10), Parent: "p"})
		s := newSimulation(t, d)
		s.cost = func(dep departure) int64 { return 1 }
		for _, key := range []string{"a", "b"} {
			jobs := entries(key, ids(20)...)
			for i := range jobs {
				jobs[i].Cost = 3
			}
			s.enqueue(jobs...)
		}
		s.drain(time.Minute)
		h := history(t, d, "p")
		require.Len(t, h.Departures, 40)
		require.Equal(t, "a", h.Departures[0].Key)
		require.Empty(t, h.Verify().Violations)
		_, err := d.queue(t).History(context.Background(), "a")
		require.ErrorIs(t, err, throttle.ErrNoHistory)
	})
}

// What an operator has leave past the limit is told apart, and one planted departure too
// many is found.
func TestVerifyFindsWhatDoesNotBelong(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 100, History: 1000})
		s := newSimulation(t, d)
		s.enqueue(entries("k", ids(30)...)...)
		s.forward(time.Second)
		s.do(func(q *throttle.Queue) { require.NoError(t, q.ReleaseNow(context.Background(), "k", "000025")) })
		s.drain(time.Minute)
		v := history(t, d, "k").Verify()
		require.Empty(t, v.Violations)
		require.Equal(t, 1, v.Forced)

		at := s.departures[20].At.Add(30 * time.Millisecond)
		require.NoError(t, d.client.Del(context.Background(), script.HistoryKey(0, "k")).Err())
		add := func(text string) {
			require.NoError(t, d.client.XAdd(context.Background(), &redis.XAddArgs{Stream: script.HistoryKey(0, "k"), Values: []string{"e", text}}).Err())
		}
		for i, dep := range s.departures {
			if i == 21 {
				add(fmt.Sprintf("d %d 1 1 0 1 - planted k", at.UnixMicro()))
			}
			add(fmt.Sprintf("d %d 1 1 0 1 - %s k", dep.At.UnixMicro(), dep.job))
		}
		v = history(t, d, "k").Verify()
		found := false
		for _, x := range v.Violations {
			if !x.From.After(at) && !x.To.Before(at) {
				found = true
			}
		}
		require.True(t, found, "%+v", v.Violations)
	})
}
