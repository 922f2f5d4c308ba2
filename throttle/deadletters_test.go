package throttle_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
	"github.com/weirq/weir/throttle/throttletest"
)

// Dead letters are listed oldest first, over all keys or of one, and read whole.
func TestDeadLettersAreListedAndRead(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "10/s", 1)
		s.end = func(departure) (string, time.Duration) { return script.Dead, 0 }
		var want []string
		for i := range 12 {
			key := []string{"a", "b", "c"}[i%3]
			id := fmt.Sprintf("%02d", i)
			s.put(throttle.Job{Key: key, ID: id, Type: "t", Payload: []byte("body"), Cost: 2, Priority: 1})
			s.forward(2 * time.Second)
			want = append(want, id)
		}
		q := d.queue(t)
		for _, limit := range []int{1, 5, 100} {
			all := pages(t, limit, func(p throttle.Page) (throttle.JobPage, error) { return q.DeadLetters(ctx, p) })
			require.Equal(t, want, listed(all))
			require.Equal(t, "b", all[1].Key)
			require.Equal(t, "because of this", all[1].Reason)
			require.EqualValues(t, 2, all[1].Cost)
			one := pages(t, limit, func(p throttle.Page) (throttle.JobPage, error) { return q.Jobs(ctx, "a", throttle.Dead, p) })
			require.Equal(t, []string{"00", "03", "06", "09"}, listed(one))
		}
		info, err := q.Job(ctx, "b", "04")
		require.NoError(t, err)
		require.Equal(t, throttle.Dead, info.State)
		require.Equal(t, "body", string(info.Job.Payload))
		require.Equal(t, 1, info.Attempts)
		require.Len(t, info.History, 1)
		require.WithinDuration(t, s.departures[4].At, info.At, time.Second)
	})
}

// A replayed job goes through its bucket like everything else, and can be replayed as
// often as it dies, or is done and kept. A hand-over that is repeated runs nothing twice.
func TestReplayRunsAJobAgainEachTime(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "1/s", 1), MaxInFlight: 10, KeepDone: time.Hour})
		s := newSimulation(t, d)
		what := script.Dead
		s.end = func(departure) (string, time.Duration) { return what, 0 }
		window := &throttle.Dedupe{Window: time.Hour}
		s.put(throttle.Job{Key: "k", ID: "1", Type: "t", Payload: []byte("body"), Cost: 3, Dedupe: window})
		s.drain(time.Minute)
		replay := func() error {
			s.open++
			var err error
			s.do(func(q *throttle.Queue) { err = q.Replay(ctx, "k", "1") })
			return err
		}
		require.NoError(t, replay())
		err := replay()
		require.ErrorIs(t, err, throttle.ErrAlive)
		require.EqualError(t, err, `replay job "1" of key "k": a job with this id has not ended: it is waiting, not dead`)
		s.open--
		s.forward(time.Minute)
		what = script.Done
		require.NoError(t, replay(), "it died again")
		s.drain(time.Minute)
		info, err := d.queue(t).Job(ctx, "k", "1")
		require.NoError(t, err)
		require.Equal(t, throttle.Done, info.State)
		require.Equal(t, 1, info.Attempts, "attempts count anew")
		require.EqualValues(t, 3, info.Job.Cost)
		require.NoError(t, replay(), "one that is done and kept")
		s.drain(time.Minute)
		require.Equal(t, []string{"1", "1", "1", "1"}, s.jobs("k"))
		for i, at := range s.slots("k", s.departures[0].At) {
			require.GreaterOrEqual(t, at, time.Duration(i)*3*time.Second, "it costs 3 at 1/s each time")
		}
		// Parcels that arrive again find nothing to do.
		for _, dep := range s.departures {
			h := dep.hold
			h.Run = 0
			s.depart([]script.Hold{h})
		}
		require.Len(t, s.departures, 4)
	})
}

// An id that died is free: a new job of it runs. Then the dead one cannot come back
// before that one has ended.
func TestADeadIDBlocksNobody(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "10/s", 1)
		what := script.Dead
		s.end = func(departure) (string, time.Duration) { return what, 0 }
		s.put(throttle.Job{Key: "k", ID: "x", Type: "t"})
		s.drain(time.Minute)
		what = script.Done
		s.down = true
		r := s.put(throttle.Job{Key: "k", ID: "x", Type: "t"})[0]
		require.False(t, r.Duplicate)
		require.ErrorIs(t, d.queue(t).Replay(ctx, "k", "x"), throttle.ErrAlive)
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"x", "x"}, s.jobs("k"))
		require.NoError(t, d.queue(t).Replay(ctx, "k", "x"))
	})
}

// All dead letters of a key, or of all keys, come back or go with one call.
func TestDeadLettersComeBackOrGoTogether(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	ctx := t.Context()
	unlimited(t, q)
	die(t, q, "a", 450)
	die(t, q, "b", 30)
	die(t, q, "c", 30)
	n, err := q.ReplayAll(ctx, "a")
	require.NoError(t, err)
	require.EqualValues(t, 450, n)
	k, err := q.Key(ctx, "a")
	require.NoError(t, err)
	require.EqualValues(t, 450, k.Waiting)
	require.Zero(t, k.Kept)
	require.NoError(t, q.Discard(ctx, "b", "0"))
	require.ErrorIs(t, q.Discard(ctx, "b", "0"), throttle.ErrNoJob)
	require.EqualError(t, q.Discard(ctx, "a", "0"), `discard job "0" of key "a": a job with this id has not ended: it is waiting, not dead`)
	n, err = q.DiscardAll(ctx, "b")
	require.NoError(t, err)
	require.EqualValues(t, 29, n)
	n, err = q.ReplayAll(ctx, throttle.AnyKey)
	require.NoError(t, err)
	require.EqualValues(t, 30, n)
	s, err := q.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, s.Dead)
	require.EqualValues(t, 480, s.Totals.Replayed)
	require.EqualValues(t, 30, s.Totals.Discarded)
}

// die has jobs of a key run and die.
func die(t *testing.T, q *throttle.Queue, key string, n int) {
	t.Helper()
	out := make(handover, 2*n)
	stop := runScheduler(t, q, out, throttle.SchedulerConfig{})
	defer stop()
	_, err := q.EnqueueMany(t.Context(), numbered(key, n))
	require.NoError(t, err)
	p, err := throttle.NewPermits(q, 0)
	require.NoError(t, err)
	for range n {
		h := <-out
		permits, err := p.Depart(t.Context(), time.Minute, p.NewToken(), []throttle.Hold{h})
		require.NoError(t, err)
		require.Equal(t, throttle.Go, permits[0].Status)
		h.Run = permits[0].Run
		_, err = p.Finish(t.Context(), []throttle.Ending{{Hold: h, What: throttle.Dead, Reason: "test"}})
		require.NoError(t, err)
	}
}

// Above their bound the oldest dead letters go: whole, counted, and with one warning.
func TestDeadLettersAreBounded(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	q := queueOn(t, client)
	unlimited(t, q)
	const bound, surplus = 1000, 50
	die(t, q, "k", bound+surplus)
	var log strings.Builder
	stop := runScheduler(t, q, &courier{}, throttle.SchedulerConfig{
		DeadLetters: throttle.Retention{Max: bound, Every: 20 * time.Millisecond},
		Logger:      slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	eventually(t, func() bool {
		s, err := q.Stats(t.Context())
		return err == nil && s.Totals.Evicted >= surplus
	}, "nothing is evicted")
	stop()
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, bound, s.Dead)
	require.EqualValues(t, surplus, s.Totals.Evicted)
	require.Equal(t, 1, strings.Count(log.String(), "dead letters evicted"), log.String())
	shard := script.ShardName(throttle.ShardOf(q, "k"))
	for _, name := range []string{"ended:job", "ended:why", "ended:log"} {
		require.EqualValues(t, bound, client.HLen(t.Context(), shard+name).Val(), name)
	}
	for _, name := range []string{"dead", "x:k"} {
		require.EqualValues(t, bound, client.ZCard(t.Context(), shard+name).Val(), name)
	}
}

// Dead letters go when they are too old, and so do done jobs that were kept long enough.
func TestOldOnesGo(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 10, KeepDone: 10 * time.Minute})
		s := newSimulation(t, d)
		s.end = func(dep departure) (string, time.Duration) {
			if dep.job == "dead" {
				return script.Dead, 0
			}
			return script.Done, 0
		}
		s.put(throttle.Job{Key: "k", ID: "dead", Type: "t"}, throttle.Job{Key: "k", ID: "done", Type: "t"})
		s.drain(time.Minute)
		evict := func() (dead, done int64) {
			_, _, dead, done = s.call(d.scripts.Evict(0, 0, time.Hour.Microseconds(), 100)).Evicted()
			return dead, done
		}
		s.forward(9 * time.Minute)
		dead, done := evict()
		require.Zero(t, dead+done)
		s.forward(2 * time.Minute)
		dead, done = evict()
		require.Equal(t, []int64{0, 1}, []int64{dead, done})
		s.forward(time.Hour)
		dead, done = evict()
		require.Equal(t, []int64{1, 0}, []int64{dead, done})
		d.advance(t, time.Minute)
		for _, name := range d.names(t) {
			require.NotContains(t, name, "ended")
			require.NotContains(t, name, "x:")
		}
	})
}

// A new job of an id knows nothing of the attempts of those before it.
func TestAttemptsEndWithTheirJob(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "10/s", 1)
		what := script.Dead
		s.end = func(departure) (string, time.Duration) { return what, 0 }
		s.put(throttle.Job{Key: "k", ID: "a", Type: "t"}, throttle.Job{Key: "k", ID: "far", Type: "t", NotBefore: s.now.Add(100 * time.Hour)})
		s.forward(time.Second)
		what = script.Done
		s.do(func(q *throttle.Queue) { require.NoError(t, q.Replay(ctx, "k", "a")) })
		s.forward(time.Second)
		require.Equal(t, []string{"a", "a"}, s.jobs("k"))
		s.down = true
		s.put(throttle.Job{Key: "k", ID: "a", Type: "t"})
		info, err := d.queue(t).Job(ctx, "k", "a")
		require.NoError(t, err)
		require.Empty(t, info.History)
		require.Zero(t, d.client.HLen(ctx, script.ShardName(0)+"a:k").Val())
	})
}

// A damaged entry does not keep the others from being evicted, nor a damaged counter
// jobs from leaving.
func TestDamagedBookkeepingStopsNothing(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "10/s", 1)
		s.end = func(departure) (string, time.Duration) { return script.Dead, 0 }
		require.NoError(t, d.client.ZAdd(ctx, script.ShardName(0)+"dead", redis.Z{Member: "damaged"}).Err())
		for _, counter := range script.Counters {
			require.NoError(t, d.client.HSet(ctx, script.ShardName(0)+"stats", counter, "many").Err())
		}
		s.put(numbered("k", 3)...)
		s.drain(time.Minute)
		require.Len(t, s.departures, 3)
		left, _, _, _ := d.run(t, d.scripts.Evict(0, 2, time.Hour.Microseconds(), 100)).Evicted()
		require.EqualValues(t, 2, left)
	})
}

// A key that is being drained takes no replayed jobs either.
func TestDrainKeepsDeadLettersOut(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.end = func(departure) (string, time.Duration) { return script.Dead, 0 }
		s.put(numbered("k", 2)...)
		s.drain(time.Minute)
		s.control(script.Drain, time.Time{}, "k")
		s.do(func(q *throttle.Queue) {
			require.ErrorIs(t, q.Replay(context.Background(), "k", "0"), throttle.ErrDraining)
			n, err := q.ReplayAll(context.Background(), throttle.AnyKey)
			require.NoError(t, err)
			require.Zero(t, n)
			_, err = q.DiscardAll(context.Background(), "")
			require.ErrorIs(t, err, throttle.ErrInvalid)
		})
		require.EqualValues(t, 2, stats(t, d).Dead)
	})
}
