package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

const policyHelp = `Policies say what governs keys. They come from the config file of throttled serve and
from throttled policy set; the latter are called live, and win over those of the file
for the same name, until throttled policy remove.

A name is an exact key, a pattern with one * for any text (in quotes, or the shell
takes it), or * alone for all keys. Of several policies that could govern a key, the
first of these does:
  1. the one for exactly this key
  2. the one that the jobs of the key bring along
  3. the pattern with the most characters that matches
  4. the one for *
  5. the built-in one: 10/s, burst 1, 100 in flight`

func newPolicy(term terminal) *cobra.Command {
	return group("policy", "Look at policies and change them", policyHelp,
		newPolicyList(term), newPolicyGet(term), newPolicySet(term), newPolicyRemove(term), newPolicyDiff(term))
}

// governing is a policy with the name that it governs, as --json prints it.
type governing struct {
	Governs string `json:"governs"`
	policyView
}

// printGoverning prints what governs a name now.
func (c *conn) printGoverning(ctx context.Context, name string) error {
	g, err := c.governing(ctx, name)
	if err != nil {
		return err
	}
	if c.json {
		return c.object(g)
	}
	rows := [][]string{{"key", shown(name)}, {"policy", g.label()}}
	for _, f := range g.fields() {
		rows = append(rows, []string{f.name, f.text})
	}
	return c.table(rows)
}

func (c *conn) governing(ctx context.Context, name string) (governing, error) {
	e, err := c.queue.Explain(ctx, name)
	if err != nil {
		return governing{}, err
	}
	p, source := inForce(e)
	return governing{name, viewOf(p, source)}, nil
}

// label names a policy: the built-in one has no name of its own.
func (v policyView) label() string { return fmt.Sprintf("%s (%s)", shown(v.Key), v.Source) }
