package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const purgeHelp = `Purge removes the waiting and delayed jobs of a key, or of all keys that match a pattern,
and tells how many there were. They are gone for good, so it asks for --yes. Jobs on
their way to a worker or running are not touched. Jobs that are enqueued meanwhile may
be removed or not: throttled drain keeps new ones away.`

const purgeExamples = `  throttled purge billing --yes
  throttled purge 'tenant-7-*' --yes --by 'offboarding'`

func newPurge(term terminal) *cobra.Command {
	var yes bool
	return request{
		use: "purge NAME --yes [flags]", short: "Remove the waiting jobs of keys for good", long: purgeHelp, example: purgeExamples,
		args: []string{"NAME"}, changes: true,
		flags: func(set *pflag.FlagSet) { set.BoolVar(&yes, "yes", false, "really remove them") },
		check: func(args []string, set *pflag.FlagSet) error {
			if !yes {
				return errors.New("purge removes jobs for good: give --yes if that is wanted")
			}
			return names(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			n, err := c.queue.Purge(ctx, args[0])
			switch {
			case err != nil && n > 0:
				return fmt.Errorf("%w; %d jobs were removed before", err, n)
			case err != nil:
				return err
			case c.json:
				return c.object(struct {
					Name    string `json:"name"`
					Removed int64  `json:"removed"`
				}{args[0], n})
			}
			return c.line("%s: %s removed", shown(args[0]), count(n, "job"))
		},
	}.command(term)
}

// count is a number with what it counts.
func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
