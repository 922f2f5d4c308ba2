package main

import (
	"context"

	"github.com/weirq/weir/throttle"
)

// A heldName is a line of the JSON of what holds keys and lets them go.
type heldName struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Until string `json:"until,omitempty"`
}

// hold does something to names and tells what they are now.
func hold(do func(*throttle.Queue, context.Context, ...string) error, state string) func(context.Context, *conn, []string) error {
	return func(ctx context.Context, c *conn, names []string) error {
		if err := do(c.queue, ctx, names...); err != nil {
			return err
		}
		return c.printHeld(names, state, "")
	}
}

func (c *conn) printHeld(names []string, state, until string) error {
	for _, name := range names {
		var err error
		switch {
		case c.json:
			err = c.object(heldName{name, state, until})
		case until != "":
			err = c.line("%s: %s until %s", shown(name), state, until)
		default:
			err = c.line("%s: %s", shown(name), state)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const holdNames = `
Each NAME is an exact key, used or not, or a pattern with one * for any text, in quotes;
a pattern stands for keys to come as well. A key is held while any name that it matches
is, or one of its parents.`
