package throttle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// Enqueue puts a job into its bucket. It is idempotent by key and id: a job that
// is already there is answered for and left as it is, so a caller who lost the
// answer may ask again.
func (q *Queue) Enqueue(ctx context.Context, job Job) (Receipt, error) {
	receipts, err := q.enqueue(ctx, []Job{job}, func(_ int, err error) error { return err })
	if len(receipts) == 0 {
		return Receipt{}, err
	}
	return receipts[0], err
}

// EnqueueMany puts jobs into their buckets in one pipeline; jobs of one key keep
// their order. If one job is invalid nothing is written, and the error names it as
// jobs[i]. If Redis fails on the way, or a key takes no new jobs (a [*DrainingError]), the
// receipts of the jobs that were not stored, or may not have been, have an empty ID; to enqueue the same jobs with
// the same ids again is safe.
func (q *Queue) EnqueueMany(ctx context.Context, jobs []Job) ([]Receipt, error) {
	return q.enqueue(ctx, jobs, func(i int, err error) error {
		return within(fmt.Sprintf("jobs[%d]", i), err)
	})
}

// ErrDraining is matched by every [*DrainingError] through errors.Is.
var ErrDraining = errors.New("the key takes no new jobs")

// A DrainingError names keys that took no new jobs, because they or a parent of theirs
// are being drained.
type DrainingError struct{ Keys []string }

func (e *DrainingError) Error() string {
	const most = 5
	shown := make([]string, 0, most)
	for _, key := range e.Keys[:min(most, len(e.Keys))] {
		shown = append(shown, strconv.Quote(key))
	}
	text := strings.Join(shown, ", ")
	if more := len(e.Keys) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "no new jobs are taken, until it is resumed, by key " + text
}

// Is makes errors.Is(err, ErrDraining) true.
func (e *DrainingError) Is(target error) bool { return target == ErrDraining }

// A chunk of jobs goes to Redis in one script call.
const (
	chunkJobs  = 128
	chunkBytes = 256 << 10
)

type chunk struct {
	entries []script.Entry
	index   []int // of each entry's job
	bytes   int
	hops    int // times that the jobs were sent to another shard
}

func (q *Queue) enqueue(ctx context.Context, jobs []Job, place func(int, error) error) ([]Receipt, error) {
	b := batch{
		queue: q, shards: make(map[int][]chunk), homes: make(map[string]int),
		receipts: make([]Receipt, len(jobs)), draining: make(map[string]bool),
	}
	now := time.Now()
	for i, job := range jobs {
		job = job.withDefaults()
		if err := job.Validate(q.maxSize); err != nil {
			return nil, place(i, err)
		}
		stored, err := encodeJob(job, now)
		if err != nil {
			return nil, place(i, err)
		}
		e := script.Entry{Key: job.Key, ID: job.ID, Cost: job.Cost, Pool: job.Pool, Job: stored}
		if !job.NotBefore.IsZero() {
			e.NotBefore = job.NotBefore.UnixMicro()
		}
		if job.Policy != nil {
			e.Policy = job.Policy.text()
		}
		shard, known := b.homes[job.Key]
		if !known {
			shard = q.store.shard(job.Key) // once a call, or later jobs could overtake
			b.homes[job.Key] = shard
		}
		b.shards[shard] = addToChunks(b.shards[shard], e, i, 0)
	}
	for len(b.shards) > 0 {
		b.send(ctx)
	}
	if len(b.draining) > 0 {
		b.errs = append(b.errs, &DrainingError{Keys: slices.Sorted(maps.Keys(b.draining))})
	}
	if len(b.errs) > 0 {
		return b.receipts, fmt.Errorf("enqueue: %w", errors.Join(b.errs...))
	}
	return b.receipts, nil
}

// A batch is the jobs of one call on their way to their shards. The chunks of one
// shard go one after the other, so that a key's jobs keep their order even when a
// script has to be sent again.
type batch struct {
	queue    *Queue
	shards   map[int][]chunk
	homes    map[string]int  // where the jobs of a key were sent first
	draining map[string]bool // keys that took no jobs
	receipts []Receipt
	errs     []error
}

// send sends the first chunk of every shard.
func (b *batch) send(ctx context.Context) {
	var calls []*script.Call
	var sent []chunk
	hops := 0
	for shard, chunks := range b.shards {
		hops = max(hops, chunks[0].hops)
		calls = append(calls, b.queue.store.scripts.Enqueue(shard, chunks[0].entries))
		sent = append(sent, chunks[0])
		if b.shards[shard] = chunks[1:]; len(chunks) == 1 {
			delete(b.shards, shard)
		}
	}
	pauseBeforeHop(ctx, hops)
	_ = b.queue.store.run(ctx, calls...) // each call has its own error
	for i, call := range calls {
		if call.Err != nil {
			b.errs = append(b.errs, call.Err)
			delete(b.shards, call.Shard) // or later jobs would overtake
			continue
		}
		now, places := call.Places()
		for n, at := range places {
			b.stored(sent[i], n, now, at)
		}
	}
}

// stored takes in what became of one job.
func (b *batch) stored(c chunk, n int, now int64, at script.Place) {
	e, index := c.entries[n], c.index[n]
	switch {
	case at.State == script.Draining:
		b.draining[e.Key] = true
	case at.State != script.Moved:
		b.receipts[index] = receipt(e.Key, e.ID, now, at)
	case c.hops == mostHops:
		b.errs = append(b.errs, fmt.Errorf("job %q of key %q: %w", e.ID, e.Key, errHops))
	default:
		home := int(at.Position)
		b.queue.store.learn(e.Key, home)
		b.shards[home] = addToChunks(b.shards[home], e, index, c.hops+1)
	}
}

func addToChunks(chunks []chunk, e script.Entry, index, hops int) []chunk {
	last := len(chunks) - 1
	if last < 0 || len(chunks[last].entries) == chunkJobs || chunks[last].bytes+len(e.Job) > chunkBytes || chunks[last].hops != hops {
		chunks = append(chunks, chunk{hops: hops})
		last++
	}
	c := &chunks[last]
	c.entries = append(c.entries, e)
	c.index = append(c.index, index)
	c.bytes += len(e.Job)
	return chunks
}

func receipt(key, id string, now int64, at script.Place) Receipt {
	r := Receipt{Key: key, ID: id, Position: at.Position, Duplicate: at.Known}
	if wait := microseconds(at.Wait); wait < maxWait {
		r.EstimatedDeparture = time.UnixMicro(now).Add(wait)
	}
	return r
}

// microseconds is a Duration of us µs, the longest one if there are too many.
func microseconds(us int64) time.Duration {
	if us > int64(1<<63-1)/1000 {
		return 1<<63 - 1
	}
	return time.Duration(us) * time.Microsecond
}
