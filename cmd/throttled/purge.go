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

const purgeHelp = `Purge removes the waiting and delayed jobs of a key, or of all keys that match a pattern,
and tells how many there were. With --state, --type, --id-prefix or --before it removes
those that fit all of them. They are gone for good, so it asks for --yes. Jobs on their
way to a worker or running are not touched. Jobs that are enqueued meanwhile may be
removed or not: throttled drain keeps new ones away.`

const purgeExamples = `  throttled purge billing --yes
  throttled purge billing --state delayed --before 24h --yes
  throttled purge '*' --id-prefix import-7- --yes
  throttled purge 'tenant-7-*' --yes --by 'offboarding'`

// purgeFlags choose the jobs to remove.
type purgeFlags struct {
	yes    bool
	filter throttle.Filter
	before string
	age    time.Duration // before now; 0 for an instant, or none
}

func (f *purgeFlags) register(set *pflag.FlagSet) {
	set.BoolVar(&f.yes, "yes", false, "really remove them")
	set.StringVar(&f.filter.State, "state", "", "`STATE`, waiting or delayed (default both)")
	set.StringVar(&f.filter.Type, "type", "", "`TYPE` of job, such as http")
	set.StringVar(&f.filter.Prefix, "id-prefix", "", "`TEXT` that their ids begin with")
	set.StringVar(&f.before, "before", "",
		"`TIME|AGE`: enqueued before a time in RFC 3339, or longer ago than a duration such as 24h")
}

func (f *purgeFlags) check(set *pflag.FlagSet) error {
	if !f.yes {
		return errors.New("purge removes jobs for good: give --yes if that is wanted")
	}
	for _, flag := range []string{"type", "id-prefix"} { // empty they would choose all
		if set.Changed(flag) && set.Lookup(flag).Value.String() == "" {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", flag)
		}
	}
	if set.Changed("state") && f.filter.State != throttle.Waiting && f.filter.State != throttle.Delayed {
		return fmt.Errorf("--state %q is not allowed: want waiting or delayed", f.filter.State)
	}
	if !set.Changed("before") {
		return nil
	}
	var err error
	if f.age, err = time.ParseDuration(f.before); err == nil && f.age > 0 {
		return nil
	}
	f.age = 0
	if f.filter.Before, err = time.Parse(time.RFC3339, f.before); err != nil {
		return fmt.Errorf("--before %q is not allowed: want a time in RFC 3339, such as 2026-12-01T06:00:00Z, "+
			"or a duration above 0, such as 24h", f.before)
	}
	return nil
}

func newPurge(term terminal) *cobra.Command {
	var f purgeFlags
	return request{
		use: "purge NAME --yes [flags]", short: "Remove the waiting jobs of keys for good",
		long: purgeHelp, example: purgeExamples,
		args: []string{"NAME"}, changes: true, flags: f.register,
		check: func(args []string, set *pflag.FlagSet) error {
			if err := f.check(set); err != nil {
				return err
			}
			return names(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			if f.age > 0 {
				now, err := c.now(ctx)
				if err != nil {
					return err
				}
				f.filter.Before = now.Add(-f.age)
			}
			return c.purge(ctx, args[0], f.filter)
		},
	}.command(term)
}

func (c *conn) purge(ctx context.Context, name string, filter throttle.Filter) error {
	n, err := c.queue.PurgeWhere(ctx, name, filter)
	switch {
	case err != nil && n > 0:
		return fmt.Errorf("%w; %d jobs were removed before", err, n)
	case err != nil:
		return asFlag(err, "before")
	case c.json:
		return c.object(struct {
			Name    string `json:"name"`
			Removed int64  `json:"removed"`
		}{name, n})
	}
	return c.line("%s: %s removed", shown(name), count(n, "job"))
}

// count is a number with what it counts.
func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
