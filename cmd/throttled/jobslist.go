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

const jobsListHelp = `List prints the jobs of a key in one state, without what is in them:
  waiting    in the order in which they leave
  delayed    by the end of the delay
  in_flight  on their way to a worker, or running, by release
  dead       given up and kept, by end
  done       done and kept, as policies with keep_done have it, by end

In --json, at is the end of the delay, the release, the slot once a job runs, or the end.
` + pageHelp

const jobsListExamples = `  throttled jobs list billing
  throttled jobs list billing --state in_flight
  throttled jobs list billing --state dead --limit 1000 --json | jq -r .reason | sort | uniq -c`

// listable are the states that jobs are listed in.
var listable = []string{throttle.Waiting, throttle.Delayed, throttle.InFlight, throttle.Dead, throttle.Done}

// A listedJob is a line of jobs list --json.
type listedJob struct {
	Key      string `json:"key"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Position int64  `json:"position"` // in the line; 0 outside it
	At       string `json:"at,omitempty"`
	Enqueued string `json:"enqueued,omitempty"`
	Attempts int    `json:"attempts"`
	Cost     int64  `json:"cost"`
	Priority int    `json:"priority"`
	Reason   string `json:"reason,omitempty"`
}

func newJobsList(term terminal) *cobra.Command {
	var page pageFlags
	state := throttle.Waiting
	return request{
		use: "list KEY [flags]", short: "List the jobs of a key in one state",
		long: jobsListHelp, example: jobsListExamples,
		args: []string{"KEY"},
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&state, "state", state, "`STATE`: "+strings.Join(listable, ", "))
			page.register(set)
		},
		check: func(args []string, set *pflag.FlagSet) error {
			if !slices.Contains(listable, state) {
				return fmt.Errorf("--state %q is not allowed: want %s", state, strings.Join(listable, ", "))
			}
			if err := page.check(); err != nil {
				return err
			}
			return key(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			jobs, err := c.queue.Jobs(ctx, args[0], state, page.page())
			if err != nil {
				return asFlag(err, "cursor")
			}
			return c.printJobs(jobs, columnsOf(state))
		},
	}.command(term)
}

// A column of a table of jobs.
type column struct {
	title string
	cell  func(throttle.ListedJob) string
}

func instantColumn(title string, at func(throttle.ListedJob) time.Time) column {
	return column{title, func(j throttle.ListedJob) string { return orNone(stampUnlessZero(at(j))) }}
}

var (
	keyColumn      = column{"KEY", func(j throttle.ListedJob) string { return shown(j.Key) }}
	idColumn       = column{"ID", func(j throttle.ListedJob) string { return shown(j.ID) }}
	attemptsColumn = column{"ATTEMPTS", func(j throttle.ListedJob) string { return fmt.Sprint(j.Attempts) }}
	costColumn     = column{"COST", func(j throttle.ListedJob) string { return fmt.Sprint(j.Cost) }}
	enqueuedColumn = instantColumn("ENQUEUED", func(j throttle.ListedJob) time.Time { return j.Enqueued })
	endedColumn    = instantColumn("ENDED", func(j throttle.ListedJob) time.Time { return j.At })
	reasonColumn   = column{"REASON", func(j throttle.ListedJob) string {
		if j.Reason == "" {
			return none
		}
		return shown(j.Reason)
	}}
)

// columnsOf are what a table tells of jobs in a state.
func columnsOf(state string) []column {
	priority := column{"PRIORITY", func(j throttle.ListedJob) string { return fmt.Sprint(j.Priority) }}
	until := func(j throttle.ListedJob) time.Time { return j.At }
	switch state {
	case throttle.Waiting:
		position := column{"POSITION", func(j throttle.ListedJob) string { return fmt.Sprint(j.Position) }}
		return []column{position, idColumn, priority, costColumn, attemptsColumn, enqueuedColumn}
	case throttle.Delayed:
		return []column{instantColumn("UNTIL", until), idColumn, priority, costColumn, attemptsColumn, enqueuedColumn}
	case throttle.InFlight:
		what := column{"STATE", func(j throttle.ListedJob) string { return j.State }}
		return []column{what, instantColumn("SINCE", until), idColumn, costColumn, attemptsColumn, enqueuedColumn}
	case throttle.Done:
		return []column{endedColumn, idColumn, costColumn, attemptsColumn}
	}
	return []column{endedColumn, idColumn, costColumn, attemptsColumn, reasonColumn}
}

func (c *conn) printJobs(page throttle.JobPage, columns []column) error {
	titles := make([]string, len(columns))
	for i, column := range columns {
		titles[i] = column.title
	}
	rows := [][]string{titles}
	for _, j := range page.Jobs {
		if c.json {
			if err := c.object(listedJob{
				Key: j.Key, ID: j.ID, State: j.State, Position: j.Position,
				At: stampUnlessZero(j.At), Enqueued: stampUnlessZero(j.Enqueued), Attempts: j.Attempts, Cost: j.Cost, Priority: j.Priority, Reason: j.Reason,
			}); err != nil {
				return err
			}
			continue
		}
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = column.cell(j)
		}
		rows = append(rows, cells)
	}
	if !c.json {
		if err := c.table(rows); err != nil {
			return err
		}
	}
	return c.next(page.Next)
}
