package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const holdsHelp = `Holds lists the names, exact keys and patterns, that hold keys at the moment: paused,
draining or cooling down. throttled trail tells who made them so.`

const holdsExamples = `  throttled holds
  throttled holds --json | jq -r 'select(.paused).name' | xargs throttled resume`

// A holdView is a line of holds --json.
type holdView struct {
	Name      string `json:"name"`
	Paused    bool   `json:"paused"`
	Draining  bool   `json:"draining"`
	CoolUntil string `json:"cool_until,omitempty"`
}

func newHolds(term terminal) *cobra.Command {
	return request{
		use: "holds [flags]", short: "List what holds keys", long: holdsHelp, example: holdsExamples,
		run: func(ctx context.Context, c *conn, _ []string) error {
			holds, err := c.queue.Holds(ctx)
			if err != nil {
				return err
			}
			return c.printHolds(holds)
		},
	}.command(term)
}

func (c *conn) printHolds(holds []throttle.HeldName) error {
	rows := [][]string{{"NAME", "STATE"}}
	for _, h := range holds {
		if c.json {
			v := holdView{Name: h.Name, Paused: h.Paused, Draining: h.Draining, CoolUntil: stampUnlessZero(h.CoolUntil)}
			if err := c.object(v); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{shown(h.Name), stateOf(h)})
	}
	if c.json {
		return nil
	}
	if len(holds) == 0 {
		return c.line("nothing is held")
	}
	return c.table(rows)
}

// stateOf is how a name holds its keys, in words.
func stateOf(h throttle.HeldName) string {
	var parts []string
	if h.Paused {
		parts = append(parts, "paused")
	}
	if h.Draining {
		parts = append(parts, "draining")
	}
	if !h.CoolUntil.IsZero() {
		parts = append(parts, "cooling down until "+h.CoolUntil.UTC().Format(time.RFC3339))
	}
	return strings.Join(parts, ", ")
}
