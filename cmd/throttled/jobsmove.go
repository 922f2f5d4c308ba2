package main

import (
	"context"
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
			return each("moved to the front", (*throttle.Queue).MoveToFront)(ctx, c, args)
		},
	}.command(term)
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
	return request{
		use: "priority KEY ID P [flags]", short: "Change the priority of a job",
		long: jobsPriorityHelp, example: jobsPriorityExamples, args: []string{"KEY", "ID", "P"},
		check: func(args []string, set *pflag.FlagSet) (err error) {
			if p, err = strconv.Atoi(args[2]); err != nil || p < 0 || p > throttle.MaxPriority {
				want := fmt.Sprintf("a whole number from 0 to %d", throttle.MaxPriority)
				return &throttle.InvalidError{Field: "P", Value: args[2], Allowed: want}
			}
			return key(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			return c.eachJob(args[0], args[1:2], func(id string) (string, string, error) {
				return fmt.Sprintf("priority %d", p), "", c.queue.SetPriority(ctx, args[0], id, p)
			})
		},
	}.command(term)
}
