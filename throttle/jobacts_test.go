package throttle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// A job is cancelled in every state in which it can be.
func TestCancelEndsAJobInEveryState(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "1/s", 1)
		s.work = 10 * time.Second
		s.end = func(departure) (string, time.Duration) { return script.Retry, time.Second }
		s.put(append(numbered("k", 4), throttle.Job{Key: "k", ID: "delayed", Type: "t", NotBefore: s.now.Add(time.Hour)})...)
		s.forward(100 * time.Millisecond) // 0 runs
		s.stop()
		s.forward(900 * time.Millisecond) // 1 is on its way
		cancel := func(id, want string) {
			t.Helper()
			s.do(func(q *throttle.Queue) {
				state, err := q.Cancel(ctx, "k", id)
				require.NoError(t, err)
				require.Equal(t, want, state)
			})
		}
		cancel("0", throttle.Running)
		cancel("1", throttle.Released)
		cancel("2", throttle.Waiting)
		cancel("delayed", throttle.Delayed)
		_, err := d.queue(t).Cancel(ctx, "k", "2")
		require.ErrorIs(t, err, throttle.ErrNoJob)
		info, err := d.queue(t).Job(ctx, "k", "0")
		require.NoError(t, err)
		require.True(t, info.Last)
		s.start()
		s.forward(time.Minute)
		jobs := s.jobs("k")
		require.Equal(t, "0", jobs[0])
		require.NotContains(t, jobs[1:], "0", "the attempt that ran was its last")
		for _, id := range []string{"1", "2", "delayed"} {
			require.NotContains(t, jobs, id)
		}
		require.Contains(t, jobs, "3")
		require.EqualValues(t, 4, stats(t, d).Totals.Cancelled)
		require.Zero(t, stats(t, d).Totals.Dead)
	})
}

func TestJobsMoveInTheirLine(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "10/s", 1)
		s.down = true
		s.put(append(numbered("k", 5), throttle.Job{Key: "k", ID: "delayed", Type: "t", NotBefore: s.now.Add(300 * time.Millisecond)})...)
		s.do(func(q *throttle.Queue) {
			require.NoError(t, q.MoveToFront(ctx, "k", "3"))
			require.NoError(t, q.MoveToFront(ctx, "k", "3"), "it is there already")
			require.NoError(t, q.MoveToFront(ctx, "k", "delayed"))
			require.NoError(t, q.SetPriority(ctx, "k", "4", 9))
			require.EqualError(t, q.MoveToFront(ctx, "k", "nobody"), `move job "nobody" of key "k" to the front: no such job`)
			require.EqualError(t, q.SetPriority(ctx, "k", "nobody", 1), `change the priority of job "nobody" of key "k": no such job`)
			require.EqualError(t, q.ReleaseNow(ctx, "k", "nobody"), `release job "nobody" of key "k": no such job`)
			require.ErrorContains(t, q.SetPriority(ctx, "k", "4", 10), "priority 10")
			info, err := q.Job(ctx, "k", "4")
			require.NoError(t, err)
			require.Equal(t, 9, info.Job.Priority)
			require.EqualValues(t, 1, info.Position, "it counts as if it had come nine minutes before")
		})
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"4", "3", "0", "1", "delayed", "2"}, s.jobs("k"), "the delayed one goes before those that wait when it joins")
		require.ErrorIs(t, d.queue(t).MoveToFront(ctx, "k", "0"), throttle.ErrNoJob)
	})
}

// A priority that is taken back lets the job stand where it would have without it.
func TestAPriorityCanBeTakenBack(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.down = true
		s.put(numbered("k", 3)...)
		s.do(func(q *throttle.Queue) {
			require.NoError(t, q.SetPriority(context.Background(), "k", "2", 9))
			require.NoError(t, q.SetPriority(context.Background(), "k", "2", 0))
		})
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"0", "1", "2"}, s.jobs("k"))
	})
}

// An operator can have a job leave past limit and pause. The bucket is charged, so what
// comes after it makes up for that, and the audit trail names who did it.
func TestReleaseNowGoesPastTheLimitAndIsCharged(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "1/s", 1)
		from := s.now
		s.put(append(numbered("k", 6), throttle.Job{Key: "k", ID: "delayed", Type: "t", NotBefore: s.now.Add(time.Hour)})...)
		s.forward(500 * time.Millisecond)
		s.do(func(q *throttle.Queue) {
			require.NoError(t, q.As("ann").ReleaseNow(ctx, "k", "4"))
			require.NoError(t, q.As("ann").ReleaseNow(ctx, "k", "delayed"))
		})
		s.forward(100 * time.Millisecond)
		require.ElementsMatch(t, []string{"0", "4", "delayed"}, s.jobs("k"))
		s.drain(time.Minute)
		require.Equal(t, []string{"1", "2", "3", "5"}, s.jobs("k")[3:])
		slots := s.slots("k", from)
		require.Less(t, slots[2], 600*time.Millisecond)
		inDelta(t, func(i int) time.Duration { return s.slots("k", s.departures[0].At)[0] + time.Duration(i+3)*time.Second }, s.slots("k", s.departures[0].At)[3:])

		s.control(script.Pause, time.Time{}, "k")
		s.put(numbered("k", 2)...)
		s.forward(time.Minute)
		s.do(func(q *throttle.Queue) { require.NoError(t, q.As("ann").ReleaseNow(ctx, "k", "1")) })
		s.forward(time.Second)
		require.Equal(t, "1", s.jobs("k")[7])
		require.Len(t, s.jobs("k"), 8, "the other one waits")

		trail, err := d.queue(t).Trail(ctx, 10)
		require.NoError(t, err)
		n := 0
		for _, c := range trail {
			if c.What == "release" {
				n++
				require.Equal(t, "ann", c.Who)
				require.Equal(t, "k", c.Name)
			}
		}
		require.Equal(t, 3, n)
	})
}

// A filter has only those go that it names, however many stay.
func TestPurgeTakesWhatTheFilterNames(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		s := paced(t, d, "1/s", 1)
		s.down = true
		var jobs []throttle.Job
		for i := range d.most(3000) {
			j := throttle.Job{Key: "k", ID: throttle.NewJobID(), Type: []string{"mail", "hook"}[i%2]}
			if i%3 == 0 {
				j.NotBefore = s.now.Add(time.Hour)
			}
			jobs = append(jobs, j)
		}
		jobs[5].ID = "x-1"
		s.put(jobs...)
		s.forward(time.Minute)
		s.put(throttle.Job{Key: "k", ID: "x-2", Type: "mail"})
		n := int64(len(jobs))
		for _, c := range []struct {
			filter throttle.Filter
			want   int64
		}{
			{throttle.Filter{Prefix: "nobody"}, 0},
			{throttle.Filter{Prefix: "x-", Before: s.now}, 1},
			{throttle.Filter{State: throttle.Delayed, Type: "mail"}, (n + 5) / 6},
			{throttle.Filter{Type: "mail", Before: s.now.Add(-2 * time.Minute)}, 0},
			{throttle.Filter{Type: "mail"}, n/2 - (n+5)/6 + 1},
			{throttle.Filter{State: throttle.Waiting}, 0},
			{throttle.Filter{}, 0},
		} {
			s.do(func(q *throttle.Queue) {
				key, err := q.Key(ctx, "k")
				require.NoError(t, err)
				switch c.filter {
				case throttle.Filter{State: throttle.Waiting}:
					c.want = key.Waiting
				case throttle.Filter{}:
					c.want = key.Waiting + key.Delayed
				}
				removed, err := q.PurgeWhere(ctx, "k", c.filter)
				require.NoError(t, err)
				require.Equal(t, c.want, removed, "%+v", c.filter)
			})
		}
		require.Zero(t, stats(t, d).Waiting+stats(t, d).Delayed)
	})
}

// A job that was cancelled while it ran has no other attempt, whatever ends this one: a
// worker that shuts down, a slot that was missed, a worker that is lost.
func TestACancelledAttemptIsTheLast(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		ctx := context.Background()
		for name, end := range map[string]func(s *simulation, going []script.Hold){
			"shutdown": func(s *simulation, going []script.Hold) {
				require.Equal(t, []bool{true}, s.call(d.scripts.Finish(0, lead, ends(script.Return, going))).Held())
			},
			"missed slot, and parked": func(s *simulation, going []script.Hold) {
				s.control(script.Pause, time.Time{}, "k")
				_, slots := s.call(d.scripts.Depart(0, lead, lease, "again", going)).Slots()
				require.Equal(t, script.Gone, slots[0].Status)
				s.control(script.Resume, time.Time{}, "k")
			},
			"lost": func(s *simulation, going []script.Hold) {
				s.forward(lease * time.Microsecond)
				s.call(d.scripts.Reap(0, lead, lease, []script.Verdict{{Hold: going[0]}}))
			},
		} {
			t.Run(name, func(t *testing.T) {
				d.reset(t)
				s := paced(t, d, "100/s", 10)
				s.put(throttle.Job{Key: "k", ID: "1", Type: "t"})
				s.stop()
				s.forward(time.Second)
				_, slots := s.call(d.scripts.Depart(0, lead, lease, "first", holds(s.transit[0]))).Slots()
				going := departed(holds(s.transit[0]), slots)
				s.do(func(q *throttle.Queue) {
					state, err := q.Cancel(ctx, "k", "1")
					require.NoError(t, err)
					require.Equal(t, throttle.Running, state)
					require.ErrorIs(t, q.SetPriority(ctx, "k", "1", 9), throttle.ErrNotWaiting)
					info, err := q.Job(ctx, "k", "1")
					require.NoError(t, err)
					require.Zero(t, info.Job.Priority)
				})
				end(s, going)
				s.transit, s.stopped = nil, false
				s.forward(time.Minute)
				require.Empty(t, s.departures)
				_, err := d.queue(t).Job(ctx, "k", "1")
				require.ErrorIs(t, err, throttle.ErrNoJob)
				require.EqualValues(t, 1, stats(t, d).Totals.Cancelled)
			})
		}
	})
}
