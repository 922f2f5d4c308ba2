package main

import (
	"context"
	"errors"
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
	receipt, err := t.queue.Enqueue(ctx, job)
	if err != nil {
		if reason := refusalsIn(err).of(s.key); reason != nil {
			return &failure{code: exitSomeFailed, err: reason}
		}
		return &failure{code: exitCode(ctx, err), err: err}
	}
	if s.json {
		return writeJSON(term.out, receipt, 0)
	}
	return writeText(term.out, receipt, t.now())
}
