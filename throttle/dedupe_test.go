package throttle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

func one(t require.TestingT, q *throttle.Queue, job throttle.Job) throttle.Receipt {
	job.Type = "t"
	r, err := q.Enqueue(context.Background(), job)
	require.NoError(t, err)
	return r
}

// An id that is known is answered for with the job that has it.
func TestAKnownIDIsAnsweredFor(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.down = true
		s.put(numbered("k", 3)...)
		again := one(t, d.queue(t), throttle.Job{Key: "k", ID: "1", Payload: []byte("newer")})
		require.Equal(t, throttle.Receipt{
			Key: "k", ID: "1", State: throttle.Waiting, Position: 2, Duplicate: true, EstimatedDeparture: again.EstimatedDeparture,
		}, again)
		info, err := d.queue(t).Job(context.Background(), "k", "1")
		require.NoError(t, err)
		require.Empty(t, info.Job.Payload)
	})
}

// A window keeps the id of a job that is done; one that was cancelled, purged, expired or
// died frees it.
func TestWindowsKeepTheNamesOfDoneJobs(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1000/s", 1000)
		what := script.Done
		s.end = func(departure) (string, time.Duration) { return what, 0 }
		hour := &throttle.Dedupe{Window: time.Hour}
		s.put(throttle.Job{Key: "k", ID: "a", Type: "t", Dedupe: hour})
		s.drain(time.Second)
		done := s.now

		for _, dedupe := range []*throttle.Dedupe{hour, nil} {
			again := one(t, d.queue(t), throttle.Job{Key: "k", ID: "a", Dedupe: dedupe})
			require.True(t, again.Duplicate)
			require.Equal(t, throttle.Done, again.State)
			require.Equal(t, "a", again.ID)
		}
		require.False(t, one(t, d.queue(t), throttle.Job{Key: "other", ID: "a"}).Duplicate, "names are those of a key")
		d.set(t, done.Add(59*time.Minute))
		require.True(t, one(t, d.queue(t), throttle.Job{Key: "k", ID: "a"}).Duplicate)
		s.until(done.Add(time.Hour + time.Second))
		r := s.put(throttle.Job{Key: "k", ID: "a", Type: "t", Dedupe: hour})
		require.False(t, r[0].Duplicate, "the window is over")

		s.down = true
		s.put(throttle.Job{Key: "k", ID: "b", Type: "t", Dedupe: hour}, throttle.Job{Key: "k", ID: "c", Type: "t", Dedupe: hour})
		s.do(func(q *throttle.Queue) {
			_, err := q.Cancel(context.Background(), "k", "b")
			require.NoError(t, err)
			require.False(t, one(t, q, throttle.Job{Key: "k", ID: "b", Dedupe: hour}).Duplicate, "cancelled")
			_, err = q.Purge(context.Background(), "k")
			require.NoError(t, err)
			require.False(t, one(t, q, throttle.Job{Key: "k", ID: "c", Dedupe: hour}).Duplicate, "purged")
		})
		s.down, what = false, script.Dead
		s.forward(time.Minute)
		require.False(t, one(t, d.queue(t), throttle.Job{Key: "k", ID: "c", Dedupe: hour}).Duplicate, "a dead job blocks nobody")
	})
}

// A name goes with one job at a time, whatever its id; so does a content.
func TestJobsAreKnownByNameOrContent(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		paced(t, d, "1/s", 1)
		q := d.queue(t)
		named := func(name string) *throttle.Dedupe { return &throttle.Dedupe{Name: name} }
		first := one(t, q, throttle.Job{Key: "k", Dedupe: named("sync")})
		again := one(t, q, throttle.Job{Key: "k", Dedupe: named("sync")})
		require.True(t, again.Duplicate)
		require.Equal(t, first.ID, again.ID)
		require.False(t, one(t, q, throttle.Job{Key: "k", Dedupe: named("other")}).Duplicate)
		require.False(t, one(t, q, throttle.Job{Key: "k", ID: "sync"}).Duplicate, "an id is no name")

		content := &throttle.Dedupe{Content: true}
		body := func(payload, header string) throttle.Job {
			return throttle.Job{Key: "k", Payload: []byte(payload), Headers: map[string]string{"h": header}, Dedupe: content}
		}
		first = one(t, q, body("a", "1"))
		require.Equal(t, first.ID, one(t, q, body("a", "1")).ID)
		for _, other := range []throttle.Job{body("b", "1"), body("a", "2"), {Key: "k", Payload: []byte("a"), Dedupe: content}} {
			require.False(t, one(t, q, other).Duplicate)
		}
	})
}

// A name that counts only while its job waits is free once the job has begun.
func TestNamesAreFreeOnceTheirJobsBegin(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.work = time.Hour
		waiting := &throttle.Dedupe{Name: "sync", WhileWaiting: true}
		r := s.put(throttle.Job{Key: "k", Type: "t", Dedupe: waiting})
		s.forward(time.Second)
		second := s.put(throttle.Job{Key: "k", Type: "t", Dedupe: waiting})
		require.False(t, second[0].Duplicate)
		require.NotEqual(t, r[0].ID, second[0].ID)
		third := s.put(throttle.Job{Key: "k", Type: "t", Dedupe: waiting})
		require.Equal(t, second[0].ID, third[0].ID, "the second waits")
		// The first ends while the second is in flight: that must not free the name.
		s.forward(time.Hour - 500*time.Millisecond)
		fourth := s.put(throttle.Job{Key: "k", Type: "t", Dedupe: waiting}, throttle.Job{Key: "k", Type: "t", Dedupe: waiting})
		require.False(t, fourth[0].Duplicate)
		require.Equal(t, fourth[0].ID, fourth[1].ID)
	})
}

// A newer job takes the place of the one that waits, with its payload and cost.
func TestReplacePutsTheNewerInThePlaceOfTheOlder(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/s", 1)
		s.down = true
		replace := &throttle.Dedupe{Name: "sync", Replace: true}
		s.put(throttle.Job{Key: "k", ID: "1", Type: "t"},
			throttle.Job{Key: "k", ID: "old", Type: "t", Payload: []byte("old"), Dedupe: replace},
			throttle.Job{Key: "k", ID: "3", Type: "t"})
		r := s.put(throttle.Job{Key: "k", ID: "new", Type: "t", Payload: []byte("new"), Cost: 3, Dedupe: replace})[0]
		require.Equal(t, throttle.Receipt{
			Key: "k", ID: "old", State: throttle.Waiting, Position: 2, Duplicate: true, Replaced: true, EstimatedDeparture: r.EstimatedDeparture,
		}, r)
		info, err := d.queue(t).Job(context.Background(), "k", "old")
		require.NoError(t, err)
		require.Equal(t, "new", string(info.Job.Payload))
		require.EqualValues(t, 3, info.Job.Cost)
		key, err := d.queue(t).Key(context.Background(), "k")
		require.NoError(t, err)
		require.InDelta(t, 5, key.Backlog, 0)

		same := s.put(throttle.Job{Key: "k", ID: "3", Type: "t", Payload: []byte("newer"), Dedupe: &throttle.Dedupe{Replace: true}})[0]
		require.True(t, same.Replaced, "by its id")
		s.costs["k old"] = 3
		s.down = false
		s.drain(time.Minute)
		require.Equal(t, []string{"1", "old", "3"}, s.jobs("k"))
		inDelta(t, func(i int) time.Duration { return []time.Duration{0, time.Second, 4 * time.Second}[i] },
			s.slots("k", s.departures[0].At))
	})
}

// Debounced jobs leave once no other came for a while, or as many as may have put them
// off.
func TestDebounceWaitsForTheLast(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "100/s", 100)
		from := s.now
		debounce := &throttle.Dedupe{Name: "n", Debounce: 2 * time.Second, MaxDebounce: 5 * time.Second}
		put := func(n int) throttle.Receipt {
			return s.put(throttle.Job{Key: "k", Type: "t", Payload: fmt.Append(nil, n), Dedupe: debounce})[0]
		}
		first := put(0)
		require.Equal(t, throttle.Delayed, first.State)
		s.forward(time.Second)
		r := put(1)
		require.True(t, r.Replaced)
		require.Equal(t, first.ID, r.ID)
		s.drain(time.Minute)
		require.Len(t, s.departures, 1)
		require.WithinDuration(t, from.Add(3*time.Second), s.departures[0].At, 10*time.Millisecond)

		from = s.now
		for n := range 6 {
			put(n)
			s.forward(time.Second)
		}
		require.Len(t, s.departures, 2, "it is put off by five seconds at most")
		require.WithinDuration(t, from.Add(5*time.Second), s.departures[1].At, 10*time.Millisecond)
	})
}

func TestDedupeRefusesWhatContradicts(t *testing.T) {
	for field, dedupe := range map[string]throttle.Dedupe{
		"dedupe.name":         {Name: "two words"},
		"dedupe.content":      {Name: "n", Content: true},
		"dedupe.replace":      {Replace: true, Debounce: time.Second},
		"dedupe.window":       {Window: time.Hour, Replace: true},
		"dedupe.debounce":     {Debounce: time.Microsecond},
		"dedupe.max_debounce": {MaxDebounce: time.Second},
	} {
		err := throttle.Job{Key: "k", Type: "t", Dedupe: &dedupe}.Validate(1)
		var invalid *throttle.InvalidError
		require.ErrorAs(t, err, &invalid, field)
		require.Equal(t, field, invalid.Field)
	}
}

// A replacement brings its own deadline, or has none; and a name, which the job that was
// there without one takes on, so that it cannot be put off for ever.
func TestReplacementsBringTheirOwn(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		s := paced(t, d, "1/h", 1)
		s.put(throttle.Job{Key: "k", ID: "0", Type: "t"}, throttle.Job{Key: "k", ID: "a", Type: "t", Deadline: s.now.Add(time.Minute)})
		s.put(throttle.Job{Key: "k", ID: "a", Type: "t", Dedupe: &throttle.Dedupe{Replace: true}})
		s.forward(2 * time.Hour)
		require.Equal(t, []string{"0", "a"}, s.jobs("k"))

		s.put(throttle.Job{Key: "other", ID: "0", Type: "t"}, throttle.Job{Key: "other", ID: "b", Type: "t"})
		from := s.now
		for range 20 {
			s.put(throttle.Job{Key: "other", ID: "b", Type: "t", Dedupe: &throttle.Dedupe{Debounce: time.Second, MaxDebounce: 2 * time.Second}})
			s.forward(500 * time.Millisecond)
		}
		info, err := d.queue(t).Job(context.Background(), "other", "b")
		require.NoError(t, err)
		require.Equal(t, throttle.Waiting, info.State, "it was put off for two seconds at most after %v", from)
	})
}
