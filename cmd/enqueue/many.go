package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// enqueueMany enqueues a file with one job a line.
func enqueueMany(ctx context.Context, s settings, term terminal) error {
	d, err := s.defaults()
	if err != nil {
		return &failure{code: exitInvalid, err: err}
	}
	in, closeIn, err := openInput(s.file, term.in)
	if err != nil {
		return &failure{code: exitInvalid, err: fmt.Errorf("--file: %w", err)}
	}
	defer closeIn()
	redisURL, from := s.redisURL()
	t, err := connect(ctx, redisURL, from)
	if err != nil {
		return err
	}
	defer t.close()
	d.Now = t.now

	b := &bulk{queue: t.queue, now: t.now, term: term, json: s.json}
	if isTerminal(term.err) && (!s.json || !isTerminal(term.out)) {
		b.progress = newProgress(term.err, sizeOf(in))
	}
	return b.run(ctx, httpjob.NewReader(in, d, 0), s.batch)
}

// batchEnqueuer is the part of throttle.Queue that a bulk needs.
type batchEnqueuer interface {
	EnqueueMany(context.Context, []throttle.Job) ([]throttle.Receipt, error)
}

// A bulk takes the jobs of a file into the queue, batch after batch, so that
// jobs of one key keep their order.
type bulk struct {
	queue    batchEnqueuer
	now      func() time.Time
	term     terminal
	json     bool
	progress *progress

	tally   tally
	lines   int // that are not blank
	strange int // the first with fields that mean nothing here; 0 if none has
}

// run goes through the whole file. The result tells how far it got, if that is
// not to the end of it.
func (b *bulk) run(ctx context.Context, r *httpjob.Reader, size int) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	entries := read(reading, r)

	var ended error
	for more := true; more && ended == nil && ctx.Err() == nil; {
		var batch []entry
		batch, more = gather(ctx, entries, size)
		ended = b.take(ctx, batch)
	}
	if ended == nil && ctx.Err() != nil {
		ended = &failure{code: exitInterrupted, err: fmt.Errorf("interrupted: %s", b.tally.soFar())}
	}
	b.progress.clear()
	if ended == nil { // only then the reader is at rest
		b.warn(r.Unknown())
		ended = b.tally.verdict()
	}
	if err := b.summary(); err != nil && ended == nil {
		ended = err
	}
	return ended
}

// take enqueues one batch and reports it.
func (b *bulk) take(ctx context.Context, batch []entry) error {
	var good []entry
	var broken error
	for _, e := range batch {
		b.lines++
		if e.strange && b.strange == 0 {
			b.strange = e.line
		}
		var bad *httpjob.LineError
		switch {
		case e.err == nil:
			if late := expiresDelayed(e.job, b.now()); late != nil {
				b.fail(fmt.Errorf("line %d: %w", e.line, late))
				continue
			}
			good = append(good, e)
		case errors.As(e.err, &bad):
			b.fail(withoutKey(bad))
		default:
			broken = e.err
		}
	}
	if err := b.enqueue(ctx, good); err != nil {
		return err
	}
	if len(batch) > 0 {
		b.progress.show(batch[len(batch)-1].offset, b.tally.stored())
	}
	if broken != nil {
		return &failure{code: b.tally.badEnd(), err: fmt.Errorf("reading stopped after line %d: %w: %s", batch[len(batch)-1].line, broken, b.tally.soFar())}
	}
	return nil
}

// grace is how long a batch on its way may take to end after an interrupt. Cut
// off at once, nobody could tell what of it was stored.
const grace = 5 * time.Second

func (b *bulk) enqueue(ctx context.Context, batch []entry) error {
	if len(batch) == 0 {
		return nil
	}
	jobs := make([]throttle.Job, len(batch))
	for i, e := range batch {
		jobs[i] = e.job
	}
	patient, cancel := outlast(ctx, grace)
	defer cancel()
	receipts, err := b.queue.EnqueueMany(patient, jobs)
	if reported := b.report(batch, receipts); reported != nil {
		return reported
	}
	if err == nil {
		return nil
	}
	all, reported := b.refused(batch, receipts, err)
	if reported != nil {
		return reported
	}
	if !all {
		return b.lost(ctx, batch, receipts, err)
	}
	return nil
}

// refused counts the lines whose keys took no new jobs, or had no room for them, as
// failed, prints each of them for --json, and tells whether that was all that went wrong.
func (b *bulk) refused(batch []entry, receipts []throttle.Receipt, err error) (all bool, reported error) {
	why := refusalsIn(err)
	all = true
	out := bufio.NewWriter(b.term.out)
	for i, e := range batch {
		if i < len(receipts) && receipts[i].ID != "" {
			continue
		}
		if reason := why.of(e.job.Key); reason != nil {
			b.fail(fmt.Errorf("line %d: %w", e.line, reason))
			if b.json {
				_ = writeRefused(out, e.job, reason, e.line) // the error stays until Flush
			}
		} else {
			all = false
		}
	}
	return all, b.flush(out)
}

// lost tells what is known after Redis failed. A receipt without an id is of a
// job that was not stored, or may not have been.
func (b *bulk) lost(ctx context.Context, batch []entry, receipts []throttle.Receipt, err error) error {
	first := batch[0].line
	for i, r := range receipts {
		if r.ID == "" {
			first = batch[i].line
			break
		}
	}
	return &failure{code: exitCode(ctx, err), err: fmt.Errorf("%w: %s, and the first one in doubt is that of line %d", err, b.tally.soFar(), first)}
}

// outlast gives a context that ends after ctx by as much as grace.
func outlast(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// report counts the jobs that have a receipt, and prints each of them for
// --json.
func (b *bulk) report(batch []entry, receipts []throttle.Receipt) error {
	out := bufio.NewWriter(b.term.out)
	for i, r := range receipts {
		if r.ID == "" {
			continue
		}
		b.tally.add(r)
		if b.json {
			_ = writeJSON(out, r, batch[i].line) // the error stays until Flush
		}
	}
	return b.flush(out)
}

func (b *bulk) flush(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return &failure{code: exitSomeFailed, err: fmt.Errorf("results cannot be written: %w: %s", err, b.tally.soFar())}
	}
	return nil
}
