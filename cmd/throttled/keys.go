package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const keysHelp = `Keys lists the keys that have jobs, or those of them that match a pattern, by name: how
many of their jobs wait, are delayed, are in flight, and ended and are kept; how long ago
the next one to leave was enqueued; when the last one of those that wait is going to
leave; and the limit in force.

With more than --limit keys it lists about as many, and goes on in no order of the whole;
a key whose jobs come and go meanwhile may be listed twice, or not.
` + pageHelp

const keysExamples = `  throttled keys
  throttled keys 'tenant-*' --limit 500
  throttled keys --json | jq -r 'select(.waiting > 1000).key'`

// A keyView is a line of keys --json.
type keyView struct {
	Key           string     `json:"key"`
	Waiting       int64      `json:"waiting"`
	Delayed       int64      `json:"delayed"`
	InFlight      int64      `json:"in_flight"`
	Kept          int64      `json:"kept"`
	Level         float64    `json:"level"`
	Backlog       float64    `json:"backlog"`
	Oldest        string     `json:"oldest,omitempty"` // none waits
	OldestSeconds float64    `json:"oldest_seconds"`
	Empty         string     `json:"empty,omitempty"` // none waits, or only an event can tell
	Policy        policyView `json:"policy"`
}

func newKeys(term terminal) *cobra.Command {
	var page pageFlags
	return request{
		use: "keys [PATTERN] [flags]", short: "List the keys that have jobs", long: keysHelp, example: keysExamples,
		args: []string{"[PATTERN]"}, flags: page.register,
		check: func(args []string, _ *pflag.FlagSet) error {
			if err := page.check(); err != nil || len(args) == 0 {
				return err
			}
			return calledArgument("PATTERN", throttle.ValidatePolicyName(args[0]))
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			found, err := c.keys(ctx, strings.Join(args, ""), page.page())
			if err != nil {
				return err
			}
			return c.printKeys(found)
		},
	}.command(term)
}

// keys reads pages until there are as many keys as asked for: a page may have fewer.
func (c *conn) keys(ctx context.Context, pattern string, page throttle.Page) (throttle.KeyPage, error) {
	var found throttle.KeyPage
	for most := page.Limit; ; {
		p, err := c.queue.Keys(ctx, pattern, page)
		if err != nil {
			return found, asFlag(err, "cursor")
		}
		found.Keys = append(found.Keys, p.Keys...)
		if found.Next = p.Next; p.Next == "" || len(found.Keys) >= most {
			break
		}
		page = throttle.Page{Cursor: p.Next, Limit: most - len(found.Keys)}
	}
	// What was scanned last is the newest of those that are there twice.
	slices.Reverse(found.Keys)
	slices.SortStableFunc(found.Keys, func(a, b throttle.KeyInfo) int { return strings.Compare(a.Key, b.Key) })
	found.Keys = slices.CompactFunc(found.Keys, func(a, b throttle.KeyInfo) bool { return a.Key == b.Key })
	return found, nil
}

func (c *conn) printKeys(page throttle.KeyPage) error {
	rows := [][]string{{"KEY", "WAITING", "DELAYED", "IN FLIGHT", "KEPT", "OLDEST", "EMPTY", "LIMIT"}}
	for _, k := range page.Keys {
		if c.json {
			if err := c.object(keyOf(k)); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{
			shown(k.Key), fmt.Sprint(k.Waiting), fmt.Sprint(k.Delayed), fmt.Sprint(k.InFlight), fmt.Sprint(k.Kept),
			age(k), emptyAt(k), k.Policy.Limit.String(),
		})
	}
	if !c.json {
		if err := c.table(rows); err != nil {
			return err
		}
	}
	return c.next(page.Next)
}

func keyOf(k throttle.KeyInfo) keyView {
	v := keyView{
		Key: k.Key, Waiting: k.Waiting, Delayed: k.Delayed, InFlight: k.InFlight, Kept: k.Kept,
		Level: k.Level, Backlog: k.Backlog, Oldest: stampUnlessZero(k.Oldest), Empty: stampUnlessZero(k.Empty), Policy: viewOf(k.Policy, ""),
	}
	if !k.Oldest.IsZero() {
		v.OldestSeconds = max(0, k.At.Sub(k.Oldest)).Seconds()
	}
	return v
}

// age is how long the job that leaves next has been there.
func age(k throttle.KeyInfo) string {
	if k.Oldest.IsZero() {
		return none
	}
	return ago(k.Oldest, k.At)
}

// ago is how long before now an instant was, to the millisecond or to a tenth of a second.
func ago(at, now time.Time) string {
	d := max(0, now.Sub(at)).Round(time.Millisecond)
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond)
	}
	return brief(d)
}

func emptyAt(k throttle.KeyInfo) string {
	switch {
	case k.Waiting == 0:
		return none
	case k.Empty.IsZero():
		return "not known"
	}
	return instant(k.Empty, k.At)
}
