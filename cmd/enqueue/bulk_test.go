package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// A scripted queue answers each batch as the test says.
type scripted struct {
	many    func(ctx context.Context, batch int, jobs []throttle.Job) ([]throttle.Receipt, error)
	batches [][]throttle.Job
}

func (s *scripted) EnqueueMany(ctx context.Context, jobs []throttle.Job) ([]throttle.Receipt, error) {
	s.batches = append(s.batches, jobs)
	if s.many == nil {
		return accepted(jobs), nil
	}
	return s.many(ctx, len(s.batches), jobs)
}

func accepted(jobs []throttle.Job) []throttle.Receipt {
	receipts := make([]throttle.Receipt, len(jobs))
	for i, j := range jobs {
		receipts[i] = throttle.Receipt{Key: j.Key, ID: j.ID, Position: 1, EstimatedDeparture: time.Unix(1, 0)}
	}
	return receipts
}

// take runs a bulk over input and gives what came out of it.
func take(ctx context.Context, t *testing.T, q batchEnqueuer, input io.Reader, size int, change func(*bulk)) (result, error) {
	t.Helper()
	var out, errs bytes.Buffer
	b := &bulk{queue: q, now: time.Now, term: terminal{out: &out, err: &errs}, json: true}
	if change != nil {
		change(b)
	}
	err := b.run(ctx, httpjob.NewReader(input, httpjob.Defaults{Key: "k", URL: "http://a"}, 0), size)
	r := result{out: out.String(), err: errs.String()}
	var f *failure
	if errors.As(err, &f) {
		r.code = f.code
	}
	return r, err
}

func ids(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"%d\"}\n", i+1)
	}
	return b.String()
}

func TestBulkKeepsTheOrder(t *testing.T) {
	q := &scripted{}
	r, err := take(t.Context(), t, q, strings.NewReader(ids(1005)), 100, nil)
	require.NoError(t, err)
	n := 0
	for _, batch := range q.batches {
		require.LessOrEqual(t, len(batch), 100)
		for _, job := range batch {
			n++
			require.Equal(t, fmt.Sprint(n), job.ID)
		}
	}
	require.Equal(t, 1005, n)
	require.Equal(t, 1005, strings.Count(r.out, "\n"))
}

func TestBulkTellsHowFarItGotWhenRedisFails(t *testing.T) {
	q := &scripted{many: func(_ context.Context, batch int, jobs []throttle.Job) ([]throttle.Receipt, error) {
		receipts := accepted(jobs)
		if batch == 3 {
			receipts[1] = throttle.Receipt{}
			return receipts, errors.New("connection refused")
		}
		return receipts, nil
	}}
	r, err := take(t.Context(), t, q, strings.NewReader(ids(10)), 2, nil)
	require.EqualError(t, err, "connection refused: 5 jobs enqueued, and the first one in doubt is that of line 6")
	require.Equal(t, exitRedis, r.code)
	require.Equal(t, 5, strings.Count(r.out, "\n"), "what was stored is printed")
	require.Len(t, q.batches, 3, "and nothing is tried after it")
}

func TestBulkEndsCleanlyOnInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	q := &scripted{many: func(patient context.Context, batch int, jobs []throttle.Job) ([]throttle.Receipt, error) {
		if batch == 2 {
			interrupt()
		}
		require.NoError(t, patient.Err(), "the batch on its way may end")
		return accepted(jobs), nil
	}}
	in, pipe := io.Pipe() // it never ends by itself
	go func() {
		_, _ = io.WriteString(pipe, ids(100))
	}()
	defer func() { _ = in.Close() }()
	r, err := take(ctx, t, q, in, 3, nil)
	require.EqualError(t, err, "interrupted: 6 jobs enqueued")
	require.Equal(t, exitInterrupted, r.code)
	require.Equal(t, 6, strings.Count(r.out, "\n"))
}

func TestBulkEndsWhileNothingComes(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	in, pipe := io.Pipe()
	defer func() { _ = pipe.Close() }()
	go interrupt()
	_, err := take(ctx, t, &scripted{}, in, 3, nil)
	require.EqualError(t, err, "interrupted: 0 jobs enqueued")
}

func TestBulkDoesNotWaitForAFullBatch(t *testing.T) {
	in, pipe := io.Pipe()
	seen := make(chan struct{}, 2)
	q := &scripted{many: func(_ context.Context, _ int, jobs []throttle.Job) ([]throttle.Receipt, error) {
		seen <- struct{}{}
		return accepted(jobs), nil
	}}
	go func() {
		for range 2 {
			_, _ = io.WriteString(pipe, "{}\n")
			<-seen // nothing more is written until this one is in
		}
		_ = pipe.Close()
	}()
	_, err := take(t.Context(), t, q, in, 500, nil)
	require.NoError(t, err)
	require.Len(t, q.batches, 2)
}

func TestBulkBoundsABatchInBytes(t *testing.T) {
	q := &scripted{}
	line := `{"body":"` + strings.Repeat("x", 1<<20) + "\"}\n"
	_, err := take(t.Context(), t, q, strings.NewReader(strings.Repeat(line, 12)), 500, nil)
	require.NoError(t, err)
	for _, batch := range q.batches {
		require.LessOrEqual(t, len(batch), 9)
	}
}

func TestBulkReportsABrokenInput(t *testing.T) {
	broken := errors.New("disk is gone")
	r, err := take(t.Context(), t, &scripted{}, io.MultiReader(strings.NewReader(ids(3)), iotest.ErrReader(broken)), 10, nil)
	require.EqualError(t, err, "reading stopped after line 3: disk is gone: 3 jobs enqueued")
	require.Equal(t, exitSomeFailed, r.code)
	r, err = take(t.Context(), t, &scripted{}, iotest.ErrReader(broken), 10, nil)
	require.ErrorIs(t, err, broken)
	require.Equal(t, exitInvalid, r.code, "nothing enqueued")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestBulkStopsWhenItCannotReport(t *testing.T) {
	q := &scripted{}
	r, err := take(t.Context(), t, q, strings.NewReader(ids(10)), 2, func(b *bulk) { b.term.out = full{} })
	require.EqualError(t, err, "results cannot be written: no space left: 2 jobs enqueued")
	require.Equal(t, exitSomeFailed, r.code)
	require.Len(t, q.batches, 1)
}

func TestProgressMakesRoomForMessages(t *testing.T) {
	for _, total := range []int64{0, 1000} {
		r, err := take(t.Context(), t, &scripted{}, strings.NewReader(ids(50)+"bad\n"), 10, func(b *bulk) {
			b.progress = newProgress(b.term.err, total)
		})
		require.Error(t, err)
		require.Contains(t, r.err, "enqueued ")
		require.Contains(t, r.err, "\renqueue: line 51, column 1: not valid JSON", "the bar is wiped first")
	}
}

func TestOutlast(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	longer, done := outlast(ctx, 20*time.Millisecond)
	defer done()
	require.NoError(t, longer.Err())
	start := time.Now()
	interrupt()
	<-longer.Done()
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
}
