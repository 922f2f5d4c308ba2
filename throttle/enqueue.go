package throttle

import (
	"context"
	"errors"
	"fmt"
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
// jobs[i]. If Redis fails on the way, the receipts of the jobs that were not
// stored, or may not have been, have an empty ID; to enqueue the same jobs with
// the same ids again is safe.
func (q *Queue) EnqueueMany(ctx context.Context, jobs []Job) ([]Receipt, error) {
	return q.enqueue(ctx, jobs, func(i int, err error) error {
		return within(fmt.Sprintf("jobs[%d]", i), err)
	})
}

// A chunk of jobs goes to Redis in one script call.
const (
	chunkJobs  = 128
	chunkBytes = 256 << 10
)

type chunk struct {
	entries []script.Entry
	index   []int // of each entry's job
	bytes   int
}

func (q *Queue) enqueue(ctx context.Context, jobs []Job, place func(int, error) error) ([]Receipt, error) {
	shards := make(map[int][]chunk)
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
		shard := q.store.shard(job.Key)
		shards[shard] = addToChunks(shards[shard], e, i)
	}

	// The chunks of one shard go one after the other, so that a key's jobs keep
	// their order even when a script has to be sent again.
	receipts := make([]Receipt, len(jobs))
	var errs []error
	for turn := 0; ; turn++ {
		var calls []*script.Call
		var sent []chunk
		for shard, chunks := range shards {
			if turn < len(chunks) {
				calls = append(calls, q.store.scripts.Enqueue(shard, chunks[turn].entries))
				sent = append(sent, chunks[turn])
			}
		}
		if len(calls) == 0 {
			break
		}
		_ = q.store.run(ctx, calls...) // each call has its own error
		for i, call := range calls {
			if call.Err != nil {
				errs = append(errs, call.Err)
				delete(shards, call.Shard) // or later jobs would overtake
				continue
			}
			now, places := call.Places()
			for n, at := range places {
				e := sent[i].entries[n]
				receipts[sent[i].index[n]] = receipt(e.Key, e.ID, now, at)
			}
		}
	}
	if len(errs) > 0 {
		return receipts, fmt.Errorf("enqueue: %w", errors.Join(errs...))
	}
	return receipts, nil
}

func addToChunks(chunks []chunk, e script.Entry, index int) []chunk {
	last := len(chunks) - 1
	if last < 0 || len(chunks[last].entries) == chunkJobs || chunks[last].bytes+len(e.Job) > chunkBytes {
		chunks = append(chunks, chunk{})
		last++
	}
	c := &chunks[last]
	c.entries = append(c.entries, e)
	c.index = append(c.index, index)
	c.bytes += len(e.Job)
	return chunks
}

func receipt(key, id string, now int64, at script.Place) Receipt {
	return Receipt{
		Key: key, ID: id, Position: at.Position, Duplicate: at.Known,
		EstimatedDeparture: time.UnixMicro(now).Add(microseconds(at.Wait)),
	}
}

// microseconds is a Duration of us µs, the longest one if there are too many.
func microseconds(us int64) time.Duration {
	if us > int64(1<<63-1)/1000 {
		return 1<<63 - 1
	}
	return time.Duration(us) * time.Microsecond
}
