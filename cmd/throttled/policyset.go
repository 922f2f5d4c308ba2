package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const policySetHelp = `Set stores a live policy: of one key, of a pattern, or of * for all keys. It wins over
what the config file says of the same name, and stays until throttled policy remove.

It changes what the flags say. All else stays as it is in force for that name, which
throttled policy get shows; so a policy that is new starts from the one that governed
the name before, with its quotas, hours and parent. --quota and --open replace all that
there are, and may be repeated. --max-waiting 0 takes --overflow away too.

Waiting jobs feel it at once, those of a pattern within a second or so for thousands of
keys. It is refused, and nothing changes, if it does not go with the stored ones.`

const policySetExamples = `  throttled policy set billing --rate 20/s --burst 5
  throttled policy set billing --quota '1000/h' --quota '9000/d fixed Europe/Berlin'
  throttled policy set 'tenant-*' --parent acme --weight 2 --minimum 1/s
  throttled policy set crm --open 'mon-fri 09:00-18:00' --zone Europe/Berlin --ramp '10% 5m'
  throttled policy set crm --no-hours --no-ramp
  throttled policy set crm --ordered --job-ttl 24h --max-waiting 1000 --overflow drop_oldest`

func newPolicySet(term terminal) *cobra.Command {
	var f policyFlags
	var edits []edit
	return request{
		use: "set NAME [flags]", short: "Store a live policy", long: policySetHelp, example: policySetExamples,
		args: []string{"NAME"}, changes: true, flags: f.register,
		check: func(args []string, set *pflag.FlagSet) (err error) {
			if err = names(args, set); err == nil {
				edits, err = f.edits(set.Changed)
			}
			return err
		},
		run: func(ctx context.Context, c *conn, args []string) error { return c.setPolicy(ctx, args[0], edits) },
	}.command(term)
}

func (c *conn) setPolicy(ctx context.Context, name string, edits []edit) error {
	e, err := c.queue.Explain(ctx, name)
	if err != nil {
		return err
	}
	p, _ := inForce(e)
	p.Key = name
	for _, change := range edits {
		if err := change(&p); err != nil {
			return fail(exitInvalid, "%w", err)
		}
	}
	if err := c.queue.SetPolicy(ctx, p); err != nil {
		return err
	}
	g := governing{name, viewOf(p, throttle.Live)}
	if c.json {
		return c.object(g)
	}
	return c.line("%s: %s", g.label(), g.summary())
}
