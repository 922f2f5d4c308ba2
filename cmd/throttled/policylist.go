package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const policyListHelp = `List prints all stored policies by name, and the built-in one unless there is one for *.
A policy of the config file that a live one of the same name has replaced says so.`

const policyListExamples = `  throttled policy list
  throttled policy list --json | jq 'select(.source == "live")'`

// A listedPolicy is a line of policy list --json.
type listedPolicy struct {
	policyView
	Replaced bool `json:"replaced"` // by the live one of that name
}

func newPolicyList(term terminal) *cobra.Command {
	return request{
		use: "list [flags]", short: "List the stored policies", long: policyListHelp, example: policyListExamples,
		run: func(ctx context.Context, c *conn, _ []string) error {
			stored, err := c.queue.Policies(ctx)
			if err != nil {
				return err
			}
			return c.printPolicies(listed(stored))
		},
	}.command(term)
}

func listed(stored []throttle.StoredPolicy) (list []listedPolicy) {
	live := make(map[string]bool)
	forAll := false
	for _, p := range stored {
		live[p.Key] = live[p.Key] || p.Source == throttle.Live
		forAll = forAll || p.Key == throttle.AnyKey
	}
	if !forAll {
		list = append(list, listedPolicy{policyView: viewOf(throttle.DefaultPolicy, throttle.BuiltIn)})
	}
	for _, p := range stored {
		list = append(list, listedPolicy{viewOf(p.Policy, p.Source), p.Source == throttle.File && live[p.Key]})
	}
	return list
}

func (c *conn) printPolicies(list []listedPolicy) error {
	rows := [][]string{append([]string{"KEY", "SOURCE"}, titles()...)}
	for _, p := range list {
		if c.json {
			if err := c.object(p); err != nil {
				return err
			}
			continue
		}
		source := p.Source
		if p.Replaced {
			source += ", replaced"
		}
		rows = append(rows, append([]string{shown(p.Key), source}, p.cells()...))
	}
	if c.json {
		return nil
	}
	return c.table(rows)
}
