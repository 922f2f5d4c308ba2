package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const policyRemoveHelp = `Remove takes the live policy of a name away and prints what governs it now: the policy
of the config file for this name, or the next in order. Policies of the config file
are removed there. Where there is no live policy nothing changes, which is no error.

A policy that is the parent of others cannot go before they do.`

const policyRemoveExamples = `  throttled policy remove billing
  throttled policy remove 'tenant-*' --by 'night shift'`

func newPolicyRemove(term terminal) *cobra.Command {
	return request{
		use: "remove NAME [flags]", short: "Remove a live policy", long: policyRemoveHelp, example: policyRemoveExamples,
		args: []string{"NAME"}, check: names, changes: true,
		run: func(ctx context.Context, c *conn, args []string) error { return c.removePolicy(ctx, args[0]) },
	}.command(term)
}

func (c *conn) removePolicy(ctx context.Context, name string) error {
	stored, err := c.queue.Policies(ctx)
	if err != nil {
		return err
	}
	had := slices.ContainsFunc(stored, func(p throttle.StoredPolicy) bool { return p.Key == name && p.Source == throttle.Live })
	if err := c.queue.RemovePolicy(ctx, name); err != nil {
		return err
	}
	g, err := c.governing(ctx, name)
	if err != nil {
		return err
	}
	switch {
	case c.json:
		return c.object(struct {
			Removed bool `json:"removed"`
			governing
		}{had, g})
	case had:
		return c.line("%s: live policy removed, governed by %s now: %s", shown(name), g.label(), g.summary())
	}
	return c.line("%s: there was no live policy, governed by %s: %s", shown(name), g.label(), g.summary())
}
