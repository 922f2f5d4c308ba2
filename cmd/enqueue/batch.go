package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// batchBytes bounds what a batch holds in memory, and linger how long jobs wait
// in an unfinished one: standard input may be a slow stream.
const (
	batchBytes = 8 << 20
	linger     = 50 * time.Millisecond
)

// An entry is what a line came to.
type entry struct {
	job    throttle.Job
	line   int
	offset int64 // of the line's end
	err    error // *httpjob.LineError, or what ended the reading
	// strange tells that fields without a meaning were seen, here or before.
	strange bool
}

// read gives the lines as entries until the end or ctx. It closes the channel
// when it is done with the reader. A read from a pipe ends only with the pipe,
// whatever ctx says, which is why it has a goroutine of its own.
func read(ctx context.Context, r *httpjob.Reader) <-chan entry {
	entries := make(chan entry, 64)
	go func() {
		defer close(entries)
		strange := false
		for {
			job, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			strange = strange || len(r.Unknown()) > 0
			select {
			case entries <- entry{job: job, line: r.Line(), offset: r.Offset(), err: err, strange: strange}:
			case <-ctx.Done():
				return
			}
			var bad *httpjob.LineError
			if err != nil && !errors.As(err, &bad) {
				return
			}
		}
	}()
	return entries
}

// gather takes entries until there are jobs for a batch, or none came for a
// while. more is false at the end of the entries.
func gather(ctx context.Context, entries <-chan entry, size int) (batch []entry, more bool) {
	var late <-chan time.Time // set by the first entry
	bytes := 0
	for len(batch) < size && bytes < batchBytes {
		select {
		case e, ok := <-entries:
			if !ok {
				return batch, false
			}
			if late == nil {
				late = time.After(linger)
			}
			batch = append(batch, e)
			bytes += len(e.job.Payload)
		case <-late:
			return batch, true
		case <-ctx.Done():
			return nil, false
		}
	}
	return batch, true
}
