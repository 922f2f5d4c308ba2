package main

import (
	"context"
	"errors"

	"github.com/weirq/weir/throttle"
)

// enqueueOne enqueues the job that the flags describe. All of it is checked
// before Redis is asked for anything.
func enqueueOne(ctx context.Context, s settings, term terminal) error {
	refuse := func(err error) error { return &failure{code: exitInvalid, err: err} }
	d, err := s.defaults()
	if err != nil {
		return refuse(err)
	}
	switch {
	case s.key == "" && s.url == "":
		return refuse(errors.New("nothing to enqueue: give --key and --url for one job, or --file for many; see enqueue --help"))
	case s.key == "":
		return refuse(errors.New("--key is missing"))
	case s.url == "":
		return refuse(errors.New("--url is missing"))
	case s.changed("batch"):
		return refuse(errors.New("--batch needs --file beside it"))
	case d.Dedupe != nil && s.id == "" && d.Dedupe.Name == "" && !d.Dedupe.Content:
		return refuse(errors.New("what makes jobs the same one is missing, as a new id is no other job's: " +
			"give --id, --dedupe or --dedupe-content"))
	}
	body, err := s.body(term.in)
	if err != nil {
		return refuse(err)
	}
	d.Delay = 0 // it counts from the clock of Redis
	job, err := d.Job(s.id, body)
	if err != nil {
		return refuse(s.asFlag(err))
	}

	redisURL, from := s.redisURL()
	t, err := connect(ctx, redisURL, from)
	if err != nil {
		return err
	}
	defer t.close()
	if s.delay > 0 {
		job.NotBefore = t.now().Add(s.delay)
	}
	if err := expiresDelayed(job, t.now()); err != nil {
		return refuse(s.asFlag(err))
	}
	receipt, err := t.queue.Enqueue(ctx, job)
	if err != nil {
		if reason := refusalsIn(err).of(s.key); reason != nil {
			if s.json {
				_ = writeRefused(term.out, job, reason, 0) // the exit code tells it as well
			}
			return &failure{code: exitSomeFailed, err: reason}
		}
		return &failure{code: exitCode(ctx, err), err: s.asFlag(err)}
	}
	if s.json {
		return writeJSON(term.out, receipt, 0)
	}
	return writeText(term.out, receipt, t.now(), t.unattended(ctx, receipt))
}

// unattended tells that nobody has the job leave, as far as that can be seen: by what
// ought to have left before it.
func (t *target) unattended(ctx context.Context, r throttle.Receipt) string {
	if !leaves(r.State) {
		return ""
	}
	e, err := t.queue.ExplainJob(ctx, r.Key, r.ID)
	switch {
	case err != nil: // it has left, or the next command says what is wrong
		return ""
	case e.Cause == throttle.ByScheduler:
		return "no scheduler releases it: is throttled serve running?"
	case e.Cause == throttle.ByWorkers:
		return "no worker takes the jobs that were released: is one running for their pool?"
	}
	return ""
}
