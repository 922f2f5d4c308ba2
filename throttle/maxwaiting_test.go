package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// A full key refuses more jobs, with what waits, the bound, and when the next one leaves.
// Nothing is stored of what is refused, and the key takes jobs again as others leave.
func TestAFullKeyRefusesAndSaysUntilWhen(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/s", 1), MaxInFlight: 100, MaxWaiting: 3})
		s := newSimulation(t, d)
		s.put(numbered("k", 1)...)
		s.forward(500 * time.Millisecond)
		before := len(d.names(t))
		jobs := numbered("k", 6)[1:]
		jobs = append(jobs, throttle.Job{Key: "other", ID: "1", Type: "t"})
		receipts, err := d.queue(t).EnqueueMany(context.Background(), jobs)
		s.hear()
		s.open += 4
		require.ErrorIs(t, err, throttle.ErrFull)
		var full *throttle.FullError
		require.ErrorAs(t, err, &full)
		require.Equal(t, throttle.FullError{Key: "k", Refused: 2, Waiting: 3, Max: 3, Until: full.Until}, *full)
		require.WithinDuration(t, s.now.Add(500*time.Millisecond), full.Until, 50*time.Millisecond)
		require.Contains(t, err.Error(), `jobs refused: 2; waiting or delayed in key "k": 3, of at most 3; the next one leaves at 2023-`)
		for i, r := range receipts {
			require.Equal(t, i == 3 || i == 4, r.ID == "", "job %d", i)
		}
		require.Greater(t, len(d.names(t)), before)
		again, err := d.queue(t).Enqueue(context.Background(), jobs[0])
		require.NoError(t, err, "a job that is there is answered for")
		require.True(t, again.Duplicate)

		s.forward(time.Second)
		_, err = d.queue(t).Enqueue(context.Background(), jobs[3])
		s.open++
		require.NoError(t, err, "one has left")
		s.drain(time.Minute)
		require.EqualValues(t, 2, stats(t, d).Totals.Refused)
	})
}

// Delayed jobs count; jobs that come back for another attempt always have room.
func TestTheBoundIsForNewJobs(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 100, MaxWaiting: 2})
		s := newSimulation(t, d)
		s.end = upTo(2)
		s.put(throttle.Job{Key: "k", ID: "1", Type: "t"}, throttle.Job{Key: "k", ID: "2", Type: "t", NotBefore: s.now.Add(time.Hour)})
		_, err := d.queue(t).Enqueue(context.Background(), throttle.Job{Key: "k", Type: "t"})
		require.ErrorIs(t, err, throttle.ErrFull)
		s.drain(2 * time.Hour)
		require.Equal(t, []string{"1", "1", "2", "2"}, s.jobs("k"))
	})
}

func TestAFullKeyDropsTheOldest(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{
			Key: "*", Limit: limit(t, "1/s", 1), MaxInFlight: 100, MaxWaiting: 2, Overflow: throttle.DropOldest,
		})
		s := newSimulation(t, d)
		s.down = true
		r := s.put(numbered("k", 4)...)
		require.Equal(t, []string{"", "", "0", "1"}, []string{r[0].Displaced, r[1].Displaced, r[2].Displaced, r[3].Displaced})
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"2", "3"}, s.jobs("k"))
		require.EqualValues(t, 2, stats(t, d).Totals.Displaced)
	})
}

func TestAFullKeyDropsTheNewest(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{
			Key: "*", Limit: limit(t, "1/s", 1), MaxInFlight: 100, MaxWaiting: 2, Overflow: throttle.DropNewest,
		})
		s := newSimulation(t, d)
		s.down = true
		r := s.put(numbered("k", 3)...)
		require.Equal(t, throttle.Receipt{Key: "k", ID: "2", State: throttle.Dropped}, r[2])
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"0", "1"}, s.jobs("k"))
		require.EqualValues(t, 1, stats(t, d).Totals.Dropped)
	})
}

// The bound on all keys together holds over all shards, for one producer exactly.
func TestAllKeysTogetherAreBounded(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	q := queueOn(t, client)
	require.NoError(t, q.SetMaxWaiting(t.Context(), 100))
	stored := 0
	var full *throttle.FullError
	for i := range 40 {
		receipts, err := q.EnqueueMany(t.Context(), numbered(fmt.Sprint("key ", i), 5))
		for _, r := range receipts {
			if r.ID != "" {
				stored++
			}
		}
		if err != nil && !errors.As(err, &full) {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 100, stored)
	require.NotNil(t, full)
	require.Empty(t, full.Key)
	require.EqualValues(t, 100, full.Max)
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 100, s.Waiting)
	require.EqualValues(t, 100, s.MaxWaiting)

	require.NoError(t, q.SetMaxWaiting(t.Context(), 0))
	_, err = q.Enqueue(t.Context(), throttle.Job{Key: "more", Type: "t"})
	require.NoError(t, err)
}

// One call for very many keys, in all shards, keeps to the bound on all of them.
func TestOneCallKeepsToTheBoundOnAllKeys(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	require.NoError(t, q.SetMaxWaiting(t.Context(), 50))
	var jobs []throttle.Job
	for i := range 1000 {
		jobs = append(jobs, throttle.Job{Key: fmt.Sprint("key ", i), Type: "t"})
	}
	_, err := q.EnqueueMany(t.Context(), jobs)
	var full *throttle.FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, 950, full.Refused)
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 50, s.Waiting)
}

// What is dropped for a new job is the oldest of the lowest priority, never one that is
// more urgent than it, and never one that had an attempt.
func TestTheOldestOfTheLeastUrgentIsDisplaced(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{
			Key: "*", Limit: limit(t, "1/h", 1), MaxInFlight: 100, MaxWaiting: 3, Overflow: throttle.DropOldest,
		})
		s := newSimulation(t, d)
		s.end = func(departure) (string, time.Duration) { return script.Retry, time.Millisecond }
		s.put(throttle.Job{Key: "k", ID: "tried", Type: "t"})
		s.forward(time.Second)
		put := func(id string, priority int) throttle.Receipt {
			return s.put(throttle.Job{Key: "k", ID: id, Type: "t", Priority: priority})[0]
		}
		put("low", 0)
		put("urgent", 9)
		require.Equal(t, "low", put("middle", 5).Displaced)
		require.Equal(t, "middle", put("other", 5).Displaced)
		_, err := d.queue(t).Enqueue(context.Background(), throttle.Job{Key: "k", Type: "t"})
		require.ErrorIs(t, err, throttle.ErrFull, "all others are more urgent, or had an attempt")
	})
}
