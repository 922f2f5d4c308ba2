package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// Events of jobs are told where the policy wants them, those of keys always; a cursor goes through all of them once.
func TestEvents(t *testing.T) {
	onBoth(t, func(d *driven) {
		t, ctx := d.t, d.t.Context()
		q := d.queue(t)
		require.NoError(t, q.SetPolicy(ctx, throttle.Policy{
			Key: "told", Limit: limit(t, "1000/s", 10), Events: true, Circuit: &throttle.Circuit{Failures: 1, Rest: time.Minute},
		}))
		require.NoError(t, q.SetPolicy(ctx, throttle.Policy{Key: "quiet", Limit: limit(t, "1000/s", 10)}))
		_, cursor, err := q.Events(ctx, throttle.LatestEvents, 10)
		require.NoError(t, err)

		permits, err := throttle.NewPermits(q, 0)
		require.NoError(t, err)
		n := 0
		end := func(key, id string, e throttle.Ending) {
			t.Helper()
			n++
			_, err := q.Enqueue(ctx, throttle.Job{Key: key, ID: id, Type: "t"})
			require.NoError(t, err)
			jobs := released(d.run(t, d.scripts.Release(0, releasing(fmt.Sprint(n)))))
			require.Len(t, jobs, 1)
			h := throttle.Hold{Key: jobs[0].Key, ID: jobs[0].ID, Release: jobs[0].Release}
			gone, err := permits.Depart(ctx, time.Minute, permits.NewToken(), []throttle.Hold{h})
			require.NoError(t, err)
			require.Equal(t, throttle.Go, gone[0].Status)
			h.Run = gone[0].Run
			d.advance(t, time.Millisecond) // events have an order
			e.Hold = h
			held, err := permits.Finish(ctx, []throttle.Ending{e})
			require.NoError(t, err)
			require.Equal(t, []bool{true}, held)
		}
		end("quiet", "q1", throttle.Ending{What: throttle.Done})
		end("told", "t1", throttle.Ending{What: throttle.Done, Fared: throttle.Succeeded})
		end("told", "t2", throttle.Ending{What: throttle.Dead, Reason: "no\nuse"})
		end("quiet", "q2", throttle.Ending{What: throttle.Refused, Fared: throttle.OverLimit, Rest: time.Second})
		cooled := d.now.Add(time.Second)
		end("told", "t3", throttle.Ending{What: throttle.Dead, Reason: "500", Fared: throttle.Failed})
		opened := d.now.Add(time.Minute)

		var all []throttle.Event
		for {
			events, next, err := q.Events(ctx, cursor, 1)
			require.NoError(t, err)
			if len(events) == 0 {
				require.Equal(t, cursor, next)
				break
			}
			require.False(t, events[0].At.IsZero())
			events[0].At = time.Time{}
			if !events[0].Until.IsZero() {
				events[0].Until = events[0].Until.UTC()
			}
			all, cursor = append(all, events...), next
		}
		require.Equal(t, []throttle.Event{
			{What: throttle.JobDone, Key: "told", ID: "t1", Attempt: 1},
			{What: throttle.JobDead, Key: "told", ID: "t2", Attempt: 1, Reason: "no\nuse"},
			{What: throttle.Cooled, Key: "quiet", Until: cooled},
			{What: throttle.Opened, Key: "told", Failures: 1, Until: opened},
			{What: throttle.JobDead, Key: "told", ID: "t3", Attempt: 1, Reason: "500"},
		}, all)

		for _, bad := range []string{"x", "1-x", "1-1,2-2", "latest,"} {
			_, _, err := q.Events(ctx, bad, 1)
			require.ErrorIs(t, err, throttle.ErrInvalid, bad)
		}
		for _, most := range []int{0, -1, throttle.MaxEvents + 1} {
			_, _, err := q.Events(ctx, "", most)
			require.ErrorIs(t, err, throttle.ErrInvalid)
		}
	})
}
