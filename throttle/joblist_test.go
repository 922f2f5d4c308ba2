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

// pages reads a whole list.
func pages(t *testing.T, limit int, next func(p throttle.Page) (throttle.JobPage, error)) (jobs []throttle.ListedJob) {
	t.Helper()
	page := throttle.Page{Limit: limit}
	for {
		p, err := next(page)
		require.NoError(t, err)
		require.LessOrEqual(t, len(p.Jobs), limit)
		jobs = append(jobs, p.Jobs...)
		if p.Next == "" {
			return jobs
		}
		page.Cursor = p.Next
	}
}

func listed(jobs []throttle.ListedJob) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// The jobs of a key are listed by state, in order, page by page.
func TestJobsAreListedByState(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.work = time.Hour
		for i := range 7 {
			s.put(throttle.Job{Key: "k", ID: fmt.Sprint("w", i), Type: "t", Priority: i % 2, Cost: 2})
		}
		s.forward(time.Second)
		s.down = true
		same := s.now.Add(time.Minute) // they share their instant
		for i := range 5 {
			s.put(throttle.Job{Key: "k", ID: fmt.Sprint("d", i), Type: "t", NotBefore: same})
		}
		q, ctx := d.queue(t), context.Background()
		list := func(state string, limit int) []throttle.ListedJob {
			return pages(t, limit, func(p throttle.Page) (throttle.JobPage, error) { return q.Jobs(ctx, "k", state, p) })
		}
		for _, limit := range []int{1, 2, 3, 100} {
			running := list(throttle.InFlight, limit)
			waiting := list(throttle.Waiting, limit)
			require.Equal(t, []string{"w1", "w3", "w5", "w0", "w2"}, listed(running)[:5])
			require.Len(t, append(running, waiting...), 7)
			for i, j := range waiting {
				require.EqualValues(t, i+1, j.Position)
				require.EqualValues(t, 2, j.Cost)
			}
			for _, j := range running {
				require.Contains(t, []string{throttle.Running, throttle.Released}, j.State)
				require.WithinDuration(t, s.now.Add(-500*time.Millisecond), j.At, 700*time.Millisecond)
			}
			require.Equal(t, []string{"d0", "d1", "d2", "d3", "d4"}, listed(list(throttle.Delayed, limit)))
		}
		_, err := q.Jobs(ctx, "k", "gone", throttle.Page{})
		require.ErrorContains(t, err, `state "gone"`)
		_, err = q.Jobs(ctx, "k", throttle.Waiting, throttle.Page{Cursor: "%"})
		require.ErrorContains(t, err, "cursor")
		_, err = q.Jobs(ctx, "k", throttle.Waiting, throttle.Page{Limit: 1001})
		require.ErrorContains(t, err, "limit")
	})
}

// Jobs that leave between two pages make no other be listed twice, or missed.
func TestPagesStandStillWhileJobsLeave(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.put(numbered("k", 12)...)
		q, ctx := d.queue(t), context.Background()
		first, err := q.Jobs(ctx, "k", throttle.Waiting, throttle.Page{Limit: 5})
		require.NoError(t, err)
		s.forward(7500 * time.Millisecond) // more than the page has left
		second, err := q.Jobs(ctx, "k", throttle.Waiting, throttle.Page{Limit: 5, Cursor: first.Next})
		require.NoError(t, err)
		require.Equal(t, []string{"8", "9", "10", "11"}, listed(second.Jobs))
		require.EqualValues(t, 1, second.Jobs[0].Position)
	})
}

// A look-up tells all there is to know of a job: where it stands, its attempts and how
// they ended, what it carries.
func TestAJobTellsOfItsAttempts(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		d.policy(t, throttle.Policy{Key: "*", Limit: limit(t, "10/s", 1), MaxInFlight: 10, KeepDone: time.Hour})
		s := newSimulation(t, d)
		s.end = func(dep departure) (string, time.Duration) {
			if dep.attempt < 4 {
				return script.Retry, 10 * time.Second
			}
			return script.Done, 0
		}
		began := s.now
		s.put(throttle.Job{
			Key: "k", ID: "1", Type: "mail", Payload: []byte("body"), Headers: map[string]string{"h": "v"}, Cost: 2, Priority: 3, TTL: time.Minute,
		})
		look := func() throttle.JobInfo {
			info, err := d.queue(t).Job(context.Background(), "k", "1")
			require.NoError(t, err)
			return info
		}
		info := look()
		require.Equal(t, throttle.Waiting, info.State)
		require.EqualValues(t, 1, info.Position)
		require.Equal(t, began.UnixMicro(), info.Enqueued.UnixMicro())
		require.Equal(t, began.Add(time.Minute).UnixMicro(), info.Expires.UnixMicro())
		require.Equal(t, throttle.Job{
			Key: "k", ID: "1", Type: "mail", Payload: []byte("body"), Headers: map[string]string{"h": "v"}, Cost: 2, Priority: 3,
			Pool: throttle.DefaultPool,
		}, info.Job)

		s.forward(15 * time.Second)
		info = look()
		require.Equal(t, throttle.Delayed, info.State)
		require.Equal(t, 2, info.Attempts)
		require.Len(t, info.History, 2)
		require.Equal(t, 2, info.History[1].Number)
		require.Equal(t, script.Retry, info.History[1].Outcome)
		require.Equal(t, s.departures[1].At.UnixMicro(), info.History[1].Departed.UnixMicro())
		require.WithinDuration(t, info.History[1].Ended.Add(10*time.Second), info.At, time.Millisecond)
		require.True(t, info.Expires.IsZero(), "it has begun")

		s.drain(time.Minute)
		info = look()
		require.Equal(t, throttle.Done, info.State)
		require.Len(t, info.History, 4)
		require.Equal(t, "body", string(info.Job.Payload))
		require.Equal(t, []string{"1"}, listed(pages(t, 10, func(p throttle.Page) (throttle.JobPage, error) {
			return d.queue(t).Jobs(context.Background(), "k", throttle.Done, p)
		})))
	})
}

// Of very many attempts the latest are kept.
func TestTheLatestAttemptsAreKept(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "10/s", 1)
		s.end = upTo(30)
		s.enqueue(entries("k", "1")...)
		s.drain(time.Hour)
		info, err := d.queue(t).Job(context.Background(), "k", "1")
		require.NoError(t, err)
		require.Equal(t, throttle.Dead, info.State)
		require.Len(t, info.History, 20)
		require.Equal(t, 30, info.History[19].Number)
		require.Equal(t, throttle.Dead, info.History[19].Outcome)
	})
}

// Keys with jobs are listed page by page over all shards, with how they stand.
func TestKeysAreListed(t *testing.T) {
	q := queueOn(t, throttletest.StartRedis(t).Client())
	var jobs []throttle.Job
	for i := range 300 {
		jobs = append(jobs, numbered(fmt.Sprint("a/", i), 2)...)
		jobs = append(jobs, numbered(fmt.Sprint("b/", i), 1)...)
	}
	_, err := q.EnqueueMany(t.Context(), jobs)
	require.NoError(t, err)
	seen := make(map[string]throttle.KeyInfo)
	calls := 0
	for page := (throttle.Page{Limit: 20}); ; calls++ {
		p, err := q.Keys(t.Context(), "a/*", page)
		require.NoError(t, err)
		for _, k := range p.Keys {
			seen[k.Key] = k
		}
		if page.Cursor = p.Next; p.Next == "" {
			break
		}
	}
	require.Len(t, seen, 300)
	require.Greater(t, calls, 5)
	k := seen["a/7"]
	require.EqualValues(t, 2, k.Waiting)
	require.InDelta(t, 2, k.Backlog, 0)
	require.WithinDuration(t, time.Now(), k.Oldest, time.Minute)
	require.WithinDuration(t, k.At.Add(100*time.Millisecond), k.Empty, 100*time.Millisecond)

	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 600, s.Keys)
	require.EqualValues(t, 900, s.Waiting)
	require.EqualValues(t, 900, s.Totals.Enqueued)
}

// The counters of what waits agree with what does, whatever happens to jobs.
func TestCountersAgreeWithTheLines(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "20/s", 2)
		s.end = upTo(2)
		check := func() {
			var waiting, delayed, flight int64
			for _, key := range []string{"a", "b"} {
				k, err := d.queue(t).Key(context.Background(), key)
				require.NoError(t, err)
				waiting, delayed, flight = waiting+k.Waiting, delayed+k.Delayed, flight+k.InFlight
			}
			got := stats(t, d)
			require.Equal(t, []int64{waiting, delayed, flight}, []int64{got.Waiting, got.Delayed, got.InFlight})
		}
		for i := range 40 {
			for _, key := range []string{"a", "b"} {
				job := throttle.Job{Key: key, ID: fmt.Sprint(i), Type: "t", Priority: i % 3}
				if i%4 == 0 {
					job.NotBefore = s.now.Add(time.Second)
				}
				if i%5 == 0 {
					job.TTL = 300 * time.Millisecond
				}
				s.put(job)
			}
			s.forward(30 * time.Millisecond)
			if i%7 == 0 {
				s.do(func(q *throttle.Queue) {
					_, err := q.Cancel(context.Background(), "a", fmt.Sprint(i))
					require.NoError(t, err)
				})
			}
			check()
		}
		s.forward(time.Minute)
		check()
	})
}
