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
// answer may ask again. [Job].Dedupe has jobs known by more than that. If as many
// wait as may, the error is a [*FullError].
func (q *Queue) Enqueue(ctx context.Context, job Job) (Receipt, error) {
	receipts, err := q.enqueue(ctx, []Job{job}, func(_ int, err error) error { return err })
	if len(receipts) == 0 {
		return Receipt{}, err
	}
	return receipts[0], err
}

// EnqueueMany puts jobs into their buckets in one pipeline; jobs of one key keep
// their order. If one job is invalid nothing is written, and the error names it as
// jobs[i]. If Redis fails on the way, or a key takes no new jobs (a [*DrainingError]) or has no
// room for them (a [*FullError]), the receipts of the jobs that were not stored, or may not
// have been, have an empty ID; to enqueue the same jobs with the same ids again is safe.
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
		receipts: make([]Receipt, len(jobs)), draining: make(map[string]bool), full: make(map[string]*FullError),
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
		e := script.Entry{Key: job.Key, ID: job.ID, Cost: job.Cost, Pool: job.Pool, More: job.more(), Job: stored}
		if !job.NotBefore.IsZero() {
			e.NotBefore = max(0, job.NotBefore.UnixMicro())
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
	for _, key := range slices.Sorted(maps.Keys(b.full)) {
		b.errs = append(b.errs, b.full[key])
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
	homes    map[string]int        // where the jobs of a key were sent first
	draining map[string]bool       // keys that took no jobs
	full     map[string]*FullError // keys that had no room
	receipts []Receipt
	errs     []error
}

// send sends the first chunk of every shard.
func (b *batch) send(ctx context.Context) {
	var calls []*script.Call
	var sent []chunk
	hops := 0
	for shard, chunks := range b.shards {
		if len(calls) > 0 && b.queue.crowd.bounded() {
			break // what one takes is no room for the next
		}
		hops = max(hops, chunks[0].hops)
		others, err := b.queue.crowd.others(ctx, b.queue.store, shard)
		if err != nil {
			b.fail(shard, err)
			continue
		}
		calls = append(calls, b.queue.store.scripts.Enqueue(shard, others, chunks[0].entries))
		sent = append(sent, chunks[0])
		if b.shards[shard] = chunks[1:]; len(chunks) == 1 {
			delete(b.shards, shard)
		}
	}
	pauseBeforeHop(ctx, hops)
	_ = b.queue.store.run(ctx, calls...) // each call has its own error
	for i, call := range calls {
		if call.Err != nil {
			b.fail(call.Shard, call.Err)
			continue
		}
		placed := call.Placed(len(sent[i].entries))
		if len(placed.Places) == 0 {
			b.queue.crowd.want()
			b.shards[call.Shard] = append([]chunk{sent[i]}, b.shards[call.Shard]...)
			continue
		}
		b.stored(call.Shard, sent[i], placed)
	}
}

// fail gives a shard up, or later jobs would overtake.
func (b *batch) fail(shard int, err error) {
	b.errs = append(b.errs, err)
	delete(b.shards, shard)
}

// stored takes in what became of a chunk.
func (b *batch) stored(shard int, c chunk, placed script.Placed) {
	outlooks := make(map[string]*estimator)
	next := 0
	added := int64(0)
	for i, at := range placed.Places {
		e := c.entries[i]
		estimates := outlooks[e.Key]
		if estimates == nil {
			text := ""
			if next < len(placed.Outlooks) {
				text = placed.Outlooks[next]
			}
			next++
			estimates = newEstimator(placed.Now, placed.ShardNow, text)
			outlooks[e.Key] = estimates
		}
		if at.How == script.Added && (at.State == Waiting || at.State == Delayed) {
			added++
		}
		b.place(e, c.index[i], c.hops, at, estimates)
	}
	b.queue.crowd.added(shard, added)
}

// place takes in what became of one job.
func (b *batch) place(e script.Entry, index, hops int, at script.Place, estimates *estimator) {
	switch {
	case at.State == script.Draining:
		b.draining[e.Key] = true
	case at.State == script.Full:
		b.refused(e.Key, at, estimates)
	case at.State != script.Moved:
		b.receipts[index] = receipt(e, at, estimates)
	case hops == mostHops:
		b.errs = append(b.errs, fmt.Errorf("job %q of key %q: %w", e.ID, e.Key, errHops))
	default:
		home := int(at.Position)
		b.queue.store.learn(e.Key, home)
		b.shards[home] = addToChunks(b.shards[home], e, index, hops+1)
	}
}

func (b *batch) refused(key string, at script.Place, estimates *estimator) {
	if at.Other == script.InAll {
		key = ""
	}
	e := b.full[key]
	if e == nil {
		e = &FullError{Key: key, Waiting: at.Position, Max: int64(at.Ahead)}
		if key != "" {
			e.Until = estimates.departure(0, 0, 1, 0)
		}
		b.full[key] = e
	}
	e.Refused++
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

func receipt(e script.Entry, at script.Place, estimates *estimator) Receipt {
	r := Receipt{Key: e.Key, ID: e.ID, State: at.State}
	switch at.How {
	case script.Known:
		r.ID, r.Duplicate = at.Other, true
	case script.Replaced:
		r.ID, r.Duplicate, r.Replaced = at.Other, true, true
	case script.Displaced:
		r.Displaced = at.Other
	}
	if at.State == Dropped {
		return r
	}
	r.Position = at.Position
	r.EstimatedDeparture = estimates.estimate(at.State, at.Ahead, max(0, at.Position-1), e.Cost, estimates.start.now+at.Wait)
	if at.How != script.Known {
		r.Expires = estimates.expiry(e.More)
		r.ExpiresFirst = estimates.expiresFirst(r)
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
