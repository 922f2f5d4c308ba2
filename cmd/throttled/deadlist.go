package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const deadListHelp = `List prints the dead letters of all keys, or of one, oldest first, with why they were
given up.
` + pageHelp

const deadListExamples = `  throttled dead list
  throttled dead list billing --limit 1000 --json | jq -r .reason | sort | uniq -c`

func newDeadList(term terminal) *cobra.Command {
	var page pageFlags
	return request{
		use: "list [KEY] [flags]", short: "List dead letters", long: deadListHelp, example: deadListExamples,
		args: []string{"[KEY]"}, flags: page.register,
		check: func(args []string, set *pflag.FlagSet) error {
			if err := page.check(); err != nil || len(args) == 0 {
				return err
			}
			return key(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) (err error) {
			var jobs throttle.JobPage
			if len(args) == 0 {
				jobs, err = c.queue.DeadLetters(ctx, page.page())
			} else {
				jobs, err = c.queue.Jobs(ctx, args[0], throttle.Dead, page.page())
			}
			if err != nil {
				return asFlag(err, "cursor")
			}
			return c.printJobs(jobs, []column{endedColumn, keyColumn, idColumn, costColumn, attemptsColumn, reasonColumn})
		},
	}.command(term)
}
