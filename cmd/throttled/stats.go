package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const statsHelp = `Stats counts the jobs in all keys together, and what became of jobs since the state in
Redis was begun. throttled keys tells of each key.`

const statsExamples = `  throttled stats
  throttled stats --json | jq .waiting`

// A statsView is what stats --json prints.
type statsView struct {
	Keys       int64      `json:"keys"`
	Waiting    int64      `json:"waiting"`
	Delayed    int64      `json:"delayed"`
	InFlight   int64      `json:"in_flight"`
	Dead       int64      `json:"dead"`
	Done       int64      `json:"done"`
	MaxWaiting int64      `json:"max_waiting"` // 0 for none
	Totals     totalsView `json:"totals"`
}

type totalsView struct {
	Enqueued  int64 `json:"enqueued"`
	Departed  int64 `json:"departed"`
	Done      int64 `json:"done"`
	Retried   int64 `json:"retried"`
	Dead      int64 `json:"dead"`
	Expired   int64 `json:"expired"`
	Cancelled int64 `json:"cancelled"`
	Purged    int64 `json:"purged"`
	Displaced int64 `json:"displaced"`
	Dropped   int64 `json:"dropped"`
	Refused   int64 `json:"refused"`
	Replaced  int64 `json:"replaced"`
	Replayed  int64 `json:"replayed"`
	Discarded int64 `json:"discarded"`
	Evicted   int64 `json:"evicted"`
}

func newStats(term terminal) *cobra.Command {
	return request{
		use: "stats [flags]", short: "Count the jobs of all keys", long: statsHelp, example: statsExamples,
		run: func(ctx context.Context, c *conn, _ []string) error {
			s, err := c.queue.Stats(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return c.object(statsView{
					s.Keys, s.Waiting, s.Delayed, s.InFlight, s.Dead, s.Done, s.MaxWaiting, totalsView(s.Totals),
				})
			}
			return c.printStats(s)
		},
	}.command(term)
}

// A counter is a number with what it counts, for a table.
type counter struct {
	name string
	n    int64
	of   string
}

func (c *conn) printStats(s throttle.Stats) error {
	bound := "no bound on them"
	if s.MaxWaiting > 0 {
		bound = fmt.Sprintf("at most %d with those delayed", s.MaxWaiting)
	}
	err := c.counters([]counter{
		{"keys", s.Keys, "that have jobs"},
		{"waiting", s.Waiting, bound},
		{"delayed", s.Delayed, "until an instant or the next attempt"},
		{"in flight", s.InFlight, "on their way to a worker or running"},
		{"dead", s.Dead, "given up and kept"},
		{"done", s.Done, "done and kept"},
	})
	if err != nil {
		return err
	}
	if err := c.line("\nSince the state was begun:"); err != nil {
		return err
	}
	t := s.Totals
	return c.counters([]counter{
		{"enqueued", t.Enqueued, "taken into their lines"},
		{"departed", t.Departed, "attempts begun"},
		{"done", t.Done, ""},
		{"retried", t.Retried, "attempts that failed, with another after them"},
		{"dead", t.Dead, "given up"},
		{"expired", t.Expired, "waited too long"},
		{"cancelled", t.Cancelled, ""},
		{"purged", t.Purged, ""},
		{"displaced", t.Displaced, "dropped for a newer one"},
		{"dropped", t.Dropped, "new, at the bound of their key"},
		{"refused", t.Refused, "new, at a bound"},
		{"replaced", t.Replaced, "by a newer one"},
		{"replayed", t.Replayed, "brought back"},
		{"discarded", t.Discarded, "dead or done, thrown away by hand"},
		{"evicted", t.Evicted, "dead, removed for number or age"},
	})
}

func (c *conn) counters(list []counter) error {
	rows := make([][]string, len(list))
	for i, l := range list {
		rows[i] = []string{l.name, fmt.Sprint(l.n), l.of}
	}
	return c.table(rows)
}
