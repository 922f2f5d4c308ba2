package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const coolDownHelp = `Cooldown keeps the jobs of keys where they are for a while, or until an instant; both go
by the clock of Redis. It replaces an earlier cool-down of the same name. An instant that
has passed ends one. What waits then leaves as after throttled resume.
` + holdNames

const coolDownExamples = `  throttled cooldown billing --for 10m
  throttled cooldown 'tenant-*' --until 2026-12-01T06:00:00+01:00`

func newCoolDown(term terminal) *cobra.Command {
	var span time.Duration
	var until string
	var instant time.Time
	return request{
		use: "cooldown NAME... --for DURATION|--until TIME [flags]", short: "Keep the jobs of keys waiting for a while",
		long: coolDownHelp, example: coolDownExamples, args: []string{"NAME..."}, changes: true,
		flags: func(set *pflag.FlagSet) {
			set.DurationVar(&span, "for", 0, "`DURATION` to wait, such as 10m; up to "+brief(throttle.MaxCoolDown))
			set.StringVar(&until, "until", "", "`TIME` to wait for, in RFC 3339, such as 2026-12-01T06:00:00Z")
		},
		check: func(args []string, set *pflag.FlagSet) (err error) {
			forIt, untilIt := set.Changed("for"), set.Changed("until")
			switch {
			case forIt && untilIt:
				return errors.New("--for and --until exclude each other: give one of them")
			case !forIt && !untilIt:
				return errors.New("how long is missing: give either --for or --until")
			case forIt && (span <= 0 || span > throttle.MaxCoolDown):
				return fmt.Errorf("--for %v is not allowed: want a duration above 0 and up to %s", span, brief(throttle.MaxCoolDown))
			case untilIt:
				if instant, err = time.Parse(time.RFC3339, until); err != nil {
					return fmt.Errorf("--until %q is not allowed: want a time in RFC 3339, such as 2026-12-01T06:00:00Z", until)
				}
			}
			return names(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			end := instant
			if end.IsZero() {
				now, err := c.now(ctx)
				if err != nil {
					return err
				}
				end = now.Add(span)
			}
			if err := c.queue.CoolDown(ctx, end, args...); err != nil {
				return err
			}
			if now, err := c.now(ctx); err == nil && !end.After(now) {
				return c.printHeld(args, "not cooling down", "") // it ended one, if there was one
			}
			return c.printHeld(args, "cooling down", stamp(end))
		},
	}.command(term)
}
