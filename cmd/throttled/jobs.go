package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const jobsHelp = `Jobs looks at the jobs of a key and acts on them one by one. A job is named by its key and
its id. throttled purge removes many at once, and throttled dead is about those of all
keys that were given up.`

func newJobs(term terminal) *cobra.Command {
	return group("jobs", "Look at the jobs of a key and act on them", jobsHelp,
		newJobsList(term), newJobGet(term, "jobs"), newJobsCancel(term), newJobsFront(term), newJobsRelease(term), newJobsPriority(term))
}

// A doneToJob is a line of the JSON of what was done to jobs.
type doneToJob struct {
	Key     string `json:"key"`
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Was     string `json:"was,omitempty"` // its state before
}

// eachJob does something to jobs, one after the other, and prints what came of it. Those
// that are not there or in no state for it do not stop it: they are the error at the end.
func (c *conn) eachJob(key string, ids []string, do func(id string) (outcome, was string, err error)) error {
	var failed []error
	for _, id := range ids {
		outcome, was, err := do(id)
		switch {
		case err == nil:
			err = c.printDone(doneToJob{key, id, outcome, was})
		case errors.Is(err, throttle.ErrNoJob), errors.Is(err, throttle.ErrNotWaiting), errors.Is(err, throttle.ErrAlive):
			failed = append(failed, err)
			continue
		}
		if err != nil && len(failed) > 0 {
			return fmt.Errorf("%w; before that: %s", err, strings.Join(texts(failed), "; ")) // the exit code is of err
		}
		if err != nil {
			return err
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(failed) == len(ids):
		return fail(exitInvalid, "%s", eachLine(failed))
	}
	return fail(exitFailed, "%s", eachLine(failed))
}

// eachLine is the text of errors of which each line begins as the first one will.
func eachLine(errs []error) string { return strings.Join(texts(errs), "\nthrottled: ") }

func texts(errs []error) []string {
	list := make([]string, len(errs))
	for i, err := range errs {
		list[i] = err.Error()
	}
	return list
}

func (c *conn) printDone(d doneToJob) error {
	switch {
	case c.json:
		return c.object(d)
	case d.Was != "":
		return c.line("%s: %s (it was %s)", shown(d.ID), d.Outcome, d.Was)
	}
	return c.line("%s: %s", shown(d.ID), d.Outcome)
}

// someJobs are the exit codes of what eachJob does.
const someJobs = "\n  1    some jobs were not there, or in no state for it, and the rest is done; if that is so of\n       all of them, it is 2"

// each is the run of a request whose arguments are a key and ids.
func each(
	outcome string, do func(q *throttle.Queue, ctx context.Context, key, id string) error,
) func(context.Context, *conn, []string) error {
	return func(ctx context.Context, c *conn, args []string) error {
		return c.eachJob(args[0], args[1:], func(id string) (string, string, error) {
			return outcome, "", do(c.queue, ctx, args[0], id)
		})
	}
}
