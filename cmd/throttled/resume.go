package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

const resumeHelp = `Resume ends pause, drain and cooldown under the same names: what a pattern holds, the
same pattern lets go. What waits then leaves at burst + rate × time, or along the ramp
of its policy. throttled explain tells whether something else still holds a key.
` + holdNames

const resumeExamples = `  throttled resume billing crm
  throttled resume 'tenant-*'`

func newResume(term terminal) *cobra.Command {
	return request{
		use: "resume NAME... [flags]", short: "End a pause, a drain or a cool-down", long: resumeHelp, example: resumeExamples,
		args: []string{"NAME..."}, check: names, changes: true, run: func(ctx context.Context, c *conn, names []string) error { return c.resume(ctx, names) },
	}.command(term)
}

// resume lets names go and tells which of them held nothing, and which keys others
// still hold.
func (c *conn) resume(ctx context.Context, names []string) error {
	before, err := c.queue.Holds(ctx)
	if err != nil {
		return err
	}
	if err := c.queue.Resume(ctx, names...); err != nil {
		return err
	}
	after, err := c.queue.Holds(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		state := "not held itself"
		for _, h := range before {
			if h.Name == name {
				state = "resumed"
			}
		}
		var others []string
		for _, h := range after {
			if h.Name != name && !strings.Contains(name, "*") && h.Matches(name) {
				others = append(others, shown(h.Name)+" ("+stateOf(h)+")")
			}
		}
		if len(others) > 0 {
			state += ", but held by " + strings.Join(others, ", ")
		}
		if err := c.printHeld([]string{name}, state, ""); err != nil {
			return err
		}
	}
	return nil
}
