package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const eventsHelp = `Events prints what became of keys, the oldest first: a key was told to rest by the other side
of its calls (cooled), its circuit opened or closed, it is paused since its calls failed for too
long (disabled). Of keys whose policy has events it also prints what became of jobs: done, retry, refused,
dead, cancelled, expired. About the last ten thousand of each part of the state are kept.

With --follow it waits for more until it is interrupted, and begins with those to come unless --after says
otherwise. The last line of --json has the cursor from which another call goes on.`

const eventsExamples = `  throttled policy set '*' --events
  throttled events --follow
  throttled events --json | jq 'select(.what == "dead")'
  throttled events --json --after "$cursor"`

// An eventEntry is a line of events --json.
type eventEntry struct {
	At       string `json:"at"`
	What     string `json:"what"`
	Key      string `json:"key"`
	ID       string `json:"id,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Until    string `json:"until,omitempty"`
	Failures int    `json:"failures,omitempty"`
}

// eventPause is how long --follow waits when there is nothing new.
const eventPause = 250 * time.Millisecond

func newEvents(term terminal) *cobra.Command {
	var after string
	var follow bool
	return request{
		use: "events [flags]", short: "Show what became of keys and jobs", long: eventsHelp, example: eventsExamples,
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&after, "after", "", "`CURSOR` that --json printed, or latest for events to come")
			set.BoolVar(&follow, "follow", false, "wait for more")
		},
		check: func(_ []string, set *pflag.FlagSet) error {
			if follow && !set.Changed("after") {
				after = throttle.LatestEvents
			}
			return nil
		},
		run: func(ctx context.Context, c *conn, _ []string) error { return c.printEvents(ctx, after, follow) },
	}.command(term)
}

func (c *conn) printEvents(ctx context.Context, cursor string, follow bool) error {
	for {
		events, next, err := c.queue.Events(ctx, cursor, throttle.MaxEvents)
		if err != nil {
			return err
		}
		cursor = next
		for _, e := range events {
			if err := c.printEvent(e); err != nil {
				return err
			}
		}
		switch {
		case len(events) == throttle.MaxEvents:
			continue
		case !follow && c.json:
			return c.object(map[string]string{"cursor": cursor})
		case !follow:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(eventPause):
		}
	}
}

func (c *conn) printEvent(e throttle.Event) error {
	if c.json {
		entry := eventEntry{At: stamp(e.At), What: string(e.What), Key: e.Key, ID: e.ID, Attempt: e.Attempt, Reason: e.Reason, Failures: e.Failures}
		if !e.Until.IsZero() {
			entry.Until = stamp(e.Until)
		}
		return c.object(entry)
	}
	text := fmt.Sprintf("%s  %-9s  %s", stamp(e.At), shown(string(e.What)), shown(e.Key))
	if e.ID != "" {
		text += fmt.Sprintf("  %s attempt %d", shown(e.ID), e.Attempt)
	}
	if e.Failures > 0 {
		text += fmt.Sprintf("  %s in a row", count(int64(e.Failures), "failure"))
	}
	if !e.Until.IsZero() {
		text += "  until " + stamp(e.Until)
	}
	if e.Reason != "" {
		text += "  " + shown(e.Reason)
	}
	return c.line("%s", text)
}
