package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const jobsCancelHelp = `Cancel ends jobs. One that waits, is delayed or is on its way to a worker is gone. A call
cannot be taken back: a job that runs goes on to the end of this attempt, which is its
last.`

const jobsCancelExamples = `  throttled jobs cancel billing evt_1 evt_2
  throttled jobs list billing --json | jq -r 'select(.attempts > 5).id' | xargs throttled jobs cancel billing`

func newJobsCancel(term terminal) *cobra.Command {
	return request{
		use: "cancel KEY ID... [flags]", short: "End jobs",
		long: jobsCancelHelp, example: jobsCancelExamples, codes: someJobs, args: []string{"KEY", "ID..."}, check: key,
		run: func(ctx context.Context, c *conn, args []string) error {
			return c.eachJob(args[0], args[1:], func(id string) (outcome, was string, err error) {
				was, err = c.queue.Cancel(ctx, args[0], id)
				if was == throttle.Running {
					return "not tried again after this attempt", was, err
				}
				return "cancelled", was, err
			})
		},
	}.command(term)
}
