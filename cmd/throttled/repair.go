package main

import (
	"context"

	"github.com/spf13/cobra"
)

const repairHelp = `Repair checks the bookkeeping of a key at once, and mends what lost writes or a hand in
the data have damaged: jobs in flight are counted anew, those without a lease get one,
and a line that nobody would look at is looked at. Daemons do the same for all keys,
slowly.`

const repairExamples = `  throttled repair billing`

func newRepair(term terminal) *cobra.Command {
	return request{
		use: "repair KEY [flags]", short: "Check the bookkeeping of a key and mend it", long: repairHelp, example: repairExamples,
		args: []string{"KEY"}, check: key,
		run: func(ctx context.Context, c *conn, args []string) error {
			n, err := c.queue.Repair(ctx, args[0])
			switch {
			case err != nil:
				return err
			case c.json:
				return c.object(struct {
					Key     string `json:"key"`
					Repairs int64  `json:"repairs"`
				}{args[0], n})
			case n == 0:
				return c.line("%s: nothing to repair", shown(args[0]))
			}
			return c.line("%s: %s", shown(args[0]), count(n, "repair"))
		},
	}.command(term)
}
