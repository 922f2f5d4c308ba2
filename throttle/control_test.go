package throttle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// control holds names or lets them go as a simulation goes on.
func (s *simulation) control(what string, till time.Time, names ...string) []bool {
	return s.call(s.d.scripts.Control(0, what, till.UnixMicro(), "somebody", names)).Held()
}

func TestPausedKeyResumesAtItsPace(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, name := range []string{"shop/a", "shop/*", "*/a", "*"} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				s := paced(t, d, "10/s", 20)
				s.poll = time.Hour
				s.enqueue(entries("shop/a", ids(60)...)...)
				s.forward(time.Second)
				before := len(s.departures)
				require.Equal(t, 30, before)
				require.Equal(t, []bool{true}, s.control(script.Pause, time.Time{}, name))
				require.Equal(t, []bool{false}, s.control(script.Pause, time.Time{}, name), "it is paused already")
				s.forward(10 * time.Minute)
				require.LessOrEqual(t, len(s.departures)-before, 1, "one may have had its slot")
				before = len(s.departures)
				require.Equal(t, []bool{true}, s.control(script.Resume, time.Time{}, name))
				from := s.now
				s.drain(time.Minute)
				for i, at := range s.slots("shop/a", from)[before:] {
					if i >= 20 {
						require.GreaterOrEqual(t, at, time.Duration(i-19)*100*time.Millisecond-rounding)
					}
				}
				s.keepsLimit(limit(t, "10/s", 20), "shop/a")
				require.Equal(t, ids(60), s.jobs("shop/a"), "the line keeps its order")
			})
		}
	})
}

// A pause is kept for keys that nobody uses, and for those to come.
func TestPauseOutlivesAnIdleKey(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.poll = time.Hour
		s.control(script.Pause, time.Time{}, "a", "new/*")
		for _, key := range []string{"a", "new/b"} {
			s.enqueue(entries(key, "1")...)
		}
		s.enqueue(entries("b", "1")...)
		s.forward(time.Minute)
		require.Empty(t, s.jobs("a"))
		require.Empty(t, s.jobs("new/b"))
		require.Len(t, s.jobs("b"), 1)
		s.control(script.Resume, time.Time{}, "a")
		s.forward(time.Second)
		require.Len(t, s.jobs("a"), 1)
		s.control(script.Resume, time.Time{}, "new/*")
		s.drain(time.Second)
	})
}

func TestKeyIsHeldAsLongAsOneNameHoldsIt(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "100/s", 100)
		s.control(script.Pause, time.Time{}, "shop/*", "shop/a")
		s.enqueue(entries("shop/a", "1")...)
		s.control(script.Resume, time.Time{}, "shop/*")
		s.forward(time.Second)
		require.Empty(t, s.departures)
		s.control(script.Resume, time.Time{}, "shop/a")
		s.drain(time.Second)
	})
}

func TestCoolDownEndsByItself(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 5)
		s.enqueue(entries("k", ids(50)...)...)
		s.forward(time.Second)
		s.control(script.CoolDown, s.now.Add(30*time.Second), "k")
		from, before := s.now, len(s.departures)
		s.drain(time.Minute)
		slots := s.slots("k", from)[before:]
		require.InDelta(t, 30*time.Second, slots[0], float64(10*time.Millisecond))
		require.Equal(t, ids(50), s.jobs("k"))
		s.keepsLimit(limit(t, "10/s", 5), "k")
	})
}

func TestDrainingKeyTakesNoNewJobs(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := t.Context()
	_, err := q.Enqueue(ctx, throttle.Job{Key: "shop/a", ID: "1", Type: "t"})
	require.NoError(t, err)
	require.NoError(t, q.Drain(ctx, "shop/*"))
	receipts, err := q.EnqueueMany(ctx, []throttle.Job{
		{Key: "shop/a", ID: "1", Type: "t"}, {Key: "shop/a", ID: "2", Type: "t"}, {Key: "other", ID: "3", Type: "t"},
	})
	require.ErrorIs(t, err, throttle.ErrDraining)
	require.ErrorContains(t, err, `by key "shop/a"`)
	require.Equal(t, []string{"1", "", "3"}, []string{receipts[0].ID, receipts[1].ID, receipts[2].ID})
	require.True(t, receipts[0].Duplicate, "it is there")
	require.NoError(t, q.Resume(ctx, "shop/*"))
	_, err = q.Enqueue(ctx, throttle.Job{Key: "shop/a", ID: "2", Type: "t"})
	require.NoError(t, err)
}

func TestTrailTellsWhoChangedWhat(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := t.Context()
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	l := limit(t, "5/s", 2)
	alice := q.As("alice")
	require.NoError(t, q.As("file").SetPolicies(ctx, []throttle.Policy{{Key: "*", Limit: l}}))
	require.NoError(t, alice.SetPolicy(ctx, throttle.Policy{Key: "a", Limit: l}))
	require.NoError(t, alice.SetPolicy(ctx, throttle.Policy{Key: "a", Limit: limit(t, "7/m", 1)}))
	require.NoError(t, alice.RemovePolicy(ctx, "a"))
	require.NoError(t, alice.RemovePolicy(ctx, "a"), "there is none any more")
	require.NoError(t, q.As("bob").Pause(ctx, "shop/*"))
	require.NoError(t, q.As("bob").CoolDown(ctx, until, "b"))
	require.NoError(t, q.As("bob").Resume(ctx, "shop/*"))
	_, err := q.Enqueue(ctx, throttle.Job{Key: "b", Type: "t"})
	require.NoError(t, err)
	_, err = q.As("carol").Purge(ctx, "b")
	require.NoError(t, err)

	changes, err := q.Trail(ctx, 100)
	require.NoError(t, err)
	var told []string
	for _, c := range changes {
		require.WithinDuration(t, time.Now(), c.At, time.Minute)
		told = append([]string{fmt.Sprintf("%s %s %q: %q -> %q", c.Who, c.What, c.Name, c.Old, c.New)}, told...)
	}
	require.ElementsMatch(t, []string{
		`file load "": "" -> "+*"`,
		`alice policy "a": "" -> "5/s, burst 2, max in flight 100"`,
		`alice policy "a": "5/s, burst 2, max in flight 100" -> "7/m, burst 1, max in flight 100"`,
		`alice policy "a": "7/m, burst 1, max in flight 100" -> ""`,
		`bob pause "shop/*": "" -> "paused"`,
		`bob cooldown "b": "" -> "cool until ` + until.UTC().Format("2006-01-02T15:04:05.000Z") + `"`,
		`bob resume "shop/*": "paused" -> ""`,
		`carol purge "b": "" -> "jobs: 1"`,
	}, told)
	one, err := q.Trail(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, changes[:1], one)
}

func TestPurgeByPattern(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := t.Context()
	require.NoError(t, q.Pause(ctx, "*"))
	for _, key := range []string{"shop/a", "shop/b", "shop", "bishop/a", `sh[o]p/?`} {
		for range 3 {
			_, err := q.Enqueue(ctx, throttle.Job{Key: key, Type: "t"})
			require.NoError(t, err)
		}
	}
	n, err := q.Purge(ctx, "shop/*")
	require.NoError(t, err)
	require.EqualValues(t, 6, n)
	n, err = q.Purge(ctx, `sh[o]p/*`)
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	n, err = q.Purge(ctx, "*")
	require.NoError(t, err)
	require.EqualValues(t, 6, n)
}

// Resuming ten thousand keys at once keeps Redis busy for a moment at a time.
func TestResumingManyKeysDoesNotBlockRedis(t *testing.T) {
	server := throttletest.StartRedis(t)
	client := server.Client()
	q := queueOn(t, client)
	ctx := t.Context()
	require.NoError(t, client.ConfigSet(ctx, "slowlog-log-slower-than", "250000").Err())
	keys := make([]string, 10_000)
	var jobs []throttle.Job
	for i := range keys {
		keys[i] = fmt.Sprintf("tenant-%d", i)
		jobs = append(jobs, throttle.Job{Key: keys[i], Type: "t"})
	}
	require.NoError(t, q.Pause(ctx, keys...))
	_, err := q.EnqueueMany(ctx, jobs)
	require.NoError(t, err)
	taken := handedOver(t, q)
	require.NoError(t, q.Resume(ctx, keys...))
	for range keys {
		select {
		case <-taken:
		case <-time.After(time.Minute):
			require.Fail(t, "not all were released")
		}
	}
	require.NoError(t, q.Pause(ctx, "tenant-*"))
	require.NoError(t, q.Resume(ctx, "tenant-*"))
	slow, err := client.SlowLogGet(ctx, 10).Result()
	require.NoError(t, err)
	require.Empty(t, slow)
}

func TestControlRefusesNamesThatCannotBe(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := context.Background()
	for _, name := range []string{"", "a*b*c", string(make([]byte, 600)), "\xff"} {
		require.ErrorIs(t, q.Pause(ctx, "fine", name), throttle.ErrInvalid)
		_, err := q.Purge(ctx, name)
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.ErrorIs(t, q.RemovePolicy(ctx, name), throttle.ErrInvalid)
	}
	require.ErrorIs(t, q.CoolDown(ctx, time.Now().Add(400*24*time.Hour), "k"), throttle.ErrInvalid)
	changes, err := q.Trail(ctx, 10)
	require.NoError(t, err)
	require.Empty(t, changes, "nothing was written")
}

func TestHoldsAreListed(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := t.Context()
	until := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	require.NoError(t, q.Pause(ctx, "b", "a*"))
	require.NoError(t, q.Drain(ctx, "b"))
	require.NoError(t, q.CoolDown(ctx, until, "c"))
	require.NoError(t, q.CoolDown(ctx, time.Now().Add(-time.Hour), "over"))
	require.NoError(t, q.Pause(ctx, "gone"))
	require.NoError(t, q.Resume(ctx, "gone"))
	holds, err := q.Holds(ctx)
	require.NoError(t, err)
	for i := range holds {
		holds[i].CoolUntil = holds[i].CoolUntil.UTC()
	}
	none := time.Time{}.UTC()
	require.Equal(t, []throttle.HeldName{
		{Name: "a*", Paused: true, CoolUntil: none}, {Name: "b", Paused: true, Draining: true, CoolUntil: none}, {Name: "c", CoolUntil: until},
	}, holds)
	require.True(t, holds[0].Matches("abc"))
	require.False(t, holds[0].Matches("b"))
	require.True(t, holds[1].Matches("b"))
}

// Only an event can tell when a job of a paused key leaves.
func TestPausedJobsHaveNoDeparture(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := t.Context()
	require.NoError(t, q.Pause(ctx, "k"))
	r, err := q.Enqueue(ctx, throttle.Job{Key: "k", ID: "1", Type: "t"})
	require.NoError(t, err)
	require.Zero(t, r.EstimatedDeparture)
	require.NoError(t, q.Resume(ctx, "k"))
	job, err := q.Job(ctx, "k", "1")
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), job.EstimatedDeparture, 5*time.Second)
}
