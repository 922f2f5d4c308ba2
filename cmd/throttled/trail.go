package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const trailHelp = `Trail prints the latest changes, the newest first: who changed a policy, held keys or let
them go, or purged them, and when by the clock of Redis. A load is that of a config file
by a daemon. The newest ten thousand or more are kept.`

const trailExamples = `  throttled trail
  throttled trail --limit 500 --json | jq 'select(.name == "billing")'`

// mostChanges bounds --limit: what is kept of one part of the state.
const mostChanges = 10_000

// A trailEntry is a line of trail --json.
type trailEntry struct {
	At   string `json:"at"`
	Who  string `json:"who"`
	What string `json:"what"`
	Name string `json:"name"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

func newTrail(term terminal) *cobra.Command {
	var limit int
	return request{
		use: "trail [flags]", short: "Show who changed what", long: trailHelp, example: trailExamples,
		flags: func(set *pflag.FlagSet) {
			set.IntVar(&limit, "limit", 20, fmt.Sprintf("`N` changes at most, 1 to %d", mostChanges))
		},
		check: func([]string, *pflag.FlagSet) error {
			if limit < 1 || limit > mostChanges {
				return fmt.Errorf("--limit %d is not allowed: want a whole number from 1 to %d", limit, mostChanges)
			}
			return nil
		},
		run: func(ctx context.Context, c *conn, _ []string) error {
			changes, err := c.queue.Trail(ctx, limit)
			if err != nil {
				return err
			}
			return c.printChanges(changes)
		},
	}.command(term)
}

func (c *conn) printChanges(changes []throttle.Change) error {
	rows := [][]string{{"AT", "WHO", "WHAT", "NAME", "OLD", "NEW"}}
	cell := func(text string) string {
		if text == "" {
			return none
		}
		return shown(text)
	}
	for _, e := range changes {
		if c.json {
			if err := c.object(trailEntry{stamp(e.At), e.Who, e.What, e.Name, e.Old, e.New}); err != nil {
				return err
			}
		}
		rows = append(rows, []string{stamp(e.At), cell(e.Who), cell(e.What), cell(e.Name), cell(e.Old), cell(e.New)})
	}
	if c.json {
		return nil
	}
	return c.table(rows)
}
