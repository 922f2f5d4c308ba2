package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const jobsFrontHelp = `Front has waiting jobs leave next, under the limit of their key and in the order in which
they are named. One that is delayed does once its delay is over.`

const jobsFrontExamples = `  throttled jobs front billing evt_7 evt_9`

func newJobsFront(term terminal) *cobra.Command {
	return request{
		use: "front KEY ID... [flags]", short: "Have waiting jobs leave next",
		long: jobsFrontHelp, example: jobsFrontExamples, codes: someJobs,
		args: []string{"KEY", "ID..."}, check: key,
		run: func(ctx context.Context, c *conn, args []string) error {
			slices.Reverse(args[1:]) // each goes before those that were moved already
			return c.eachJob(args[0], args[1:], func(id string) (outcome, was string, err error) {
				outcome, err = c.toFront(ctx, args[0], id)
				return outcome, "", err
			})
		},
	}.command(term)
}

func (c *conn) toFront(ctx context.Context, key, id string) (outcome string, err error) {
	if err := c.queue.MoveToFront(ctx, key, id); err != nil {
		return "", err
	}
	const moved = "moved to the front"
	info, err := c.queue.Job(ctx, key, id)
	switch {
	case errors.Is(err, throttle.ErrNoJob): // it has ended since
		return moved, nil
	case err == nil && info.State == throttle.Delayed:
		return moved + ", once its delay is over", nil
	}
	return moved, err
}

const jobsReleaseHelp = `Release has jobs leave at once that wait or are delayed, whatever the limit, quotas and
holds of their key say: the one way past them. They are charged for like all others, so
those behind them make up for it. throttled verify lists them apart.`

const jobsReleaseExamples = `  throttled jobs release billing evt_7 --by 'ann, ticket 12'`

func newJobsRelease(term terminal) *cobra.Command {
	return request{
		use: "release KEY ID... [flags]", short: "Have jobs leave at once, past the limit",
		long: jobsReleaseHelp, example: jobsReleaseExamples, codes: someJobs, args: []string{"KEY", "ID..."},
		changes: true, check: key, run: each("released", (*throttle.Queue).ReleaseNow),
	}.command(term)
}

const jobsPriorityHelp = `Priority changes the priority of a job that waits or is delayed, and its place in the line
with it: P is 0 to 9, which goes first. A job gains one for each time that it waits for
its policy's ageing, 1m by default.`

const jobsPriorityExamples = `  throttled jobs priority billing evt_7 9`

func newJobsPriority(term terminal) *cobra.Command {
	var p int
	want := fmt.Sprintf("a whole number from 0 to %d", throttle.MaxPriority)
	return belowZero("P", want, request{
		use: "priority KEY ID P [flags]", short: "Change the priority of a job",
		long: jobsPriorityHelp, example: jobsPriorityExamples, args: []string{"KEY", "ID", "P"},
		check: func(args []string, set *pflag.FlagSet) (err error) {
			if p, err = strconv.Atoi(args[2]); err != nil || p < 0 || p > throttle.MaxPriority {
				return &throttle.InvalidError{Field: "P", Value: args[2], Allowed: want}
			}
			return key(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			return c.eachJob(args[0], args[1:2], func(id string) (string, string, error) {
				return fmt.Sprintf("priority %d", p), "", c.queue.SetPriority(ctx, args[0], id, p)
			})
		},
	}.command(term))
}
