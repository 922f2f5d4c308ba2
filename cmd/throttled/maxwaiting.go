package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const maxWaitingHelp = `Max-waiting shows the bound on the jobs that wait in all keys together, delayed ones
included, or sets it: 0 means no bound. New jobs above it are refused; those that wait
stay. What several producers add within a tenth of a second may come on top. For the
bound of one key see throttled policy set --max-waiting.

A daemon sets it as well, at its start and on SIGHUP, if its config file has max_waiting.`

const maxWaitingExamples = `  throttled max-waiting
  throttled max-waiting 1000000 --by ann
  throttled max-waiting 0`

func newMaxWaiting(term terminal) *cobra.Command {
	most := int64(-1)
	want := fmt.Sprintf("a whole number from 1 to %d, or 0 for no bound", throttle.MaxWaitingBound)
	return belowZero("N", want, request{
		use: "max-waiting [N] [flags]", short: "Show or set how many jobs may wait in all keys",
		long: maxWaitingHelp, example: maxWaitingExamples, args: []string{"[N]"}, changes: true,
		check: func(args []string, _ *pflag.FlagSet) (err error) {
			if len(args) == 0 {
				return nil
			}
			if most, err = strconv.ParseInt(args[0], 10, 64); err != nil || most < 0 || most > throttle.MaxWaitingBound {
				return &throttle.InvalidError{Field: "N", Value: args[0], Allowed: want}
			}
			return nil
		},
		run: func(ctx context.Context, c *conn, _ []string) error {
			if most >= 0 {
				if err := c.queue.SetMaxWaiting(ctx, most); err != nil {
					return err
				}
			}
			s, err := c.queue.Stats(ctx)
			if err != nil {
				return err
			}
			return c.printMaxWaiting(s)
		},
	}.command(term))
}

// belowZero refuses a negative number by what the argument of a command takes, as it
// would read like a flag.
func belowZero(argument, want string, cmd *cobra.Command) *cobra.Command {
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			number := "-" + unknown.GetSpecifiedShortnames()
			if _, bad := strconv.ParseFloat(number, 64); bad == nil {
				return &throttle.InvalidError{Field: argument, Value: number, Allowed: want}
			}
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

func (c *conn) printMaxWaiting(s throttle.Stats) error {
	n := s.Waiting + s.Delayed
	switch {
	case c.json:
		return c.object(struct {
			MaxWaiting int64 `json:"max_waiting"`
			Waiting    int64 `json:"waiting"` // delayed ones included
		}{s.MaxWaiting, n})
	case s.MaxWaiting == 0:
		return c.line("max waiting: no bound, %s", count(n, "job")+" now")
	}
	return c.line("max waiting: %d, %s now", s.MaxWaiting, count(n, "job"))
}
