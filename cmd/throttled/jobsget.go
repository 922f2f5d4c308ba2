package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

const jobGetHelp = `Get tells how a job stands, one that has ended and is kept as well: its state, its place in
the line, when it is going to leave, and how its attempts ended; of those the latest
twenty are known. What is in it may be secret, and is printed only when asked for:
--headers adds its headers, which of an HTTP call hold method and URL, and --payload
prints its payload alone, byte for byte.

In --json, at is the end of the delay, the slot, or when the job ended.`

const jobGetExamples = `  throttled %[1]s get billing evt_7
  throttled %[1]s get billing evt_7 --payload > body.json`

// notKept is what may be of a job that is not found.
const notKept = "there was none, or it has ended and is not kept: done ones are for as long as --keep-done of " +
	"their policy says, dead ones within the bounds on dead letters, cancelled and expired ones not at all"

const deadGetHelp = `
Of a job that has not ended only throttled jobs get tells.
`

// newJobGet makes the command for one of the commands that lists such jobs.
func newJobGet(term terminal, under string) *cobra.Command {
	var payload, headers bool
	dead, long := under == "dead", jobGetHelp
	if dead {
		long += "\n" + deadGetHelp
	}
	return request{
		use: "get KEY ID [flags]", short: "Show a job and its attempts",
		long: long, example: fmt.Sprintf(jobGetExamples, under),
		args: []string{"KEY", "ID"},
		flags: func(set *pflag.FlagSet) {
			set.BoolVar(&payload, "payload", false, "print nothing but the payload, as it is")
			set.BoolVar(&headers, "headers", false, "print the headers as well")
		},
		check: func(args []string, set *pflag.FlagSet) error {
			if asJSON, _ := set.GetBool(jsonFlag); payload && (headers || asJSON) {
				return errors.New("--payload prints the payload alone: leave out --headers and --json")
			}
			return key(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			info, err := c.queue.Job(ctx, args[0], args[1])
			switch {
			case errors.Is(err, throttle.ErrNoJob):
				return fail(exitInvalid, "%w: %s", err, notKept)
			case err != nil:
				return err
			case dead && info.State != throttle.Dead && info.State != throttle.Done:
				return fail(exitInvalid, "job %q of key %q is %s, not dead: see throttled jobs get", args[1], args[0], info.State)
			case payload && info.Damaged != nil:
				return fail(exitFailed, "payload of job %q of key %q: %w", args[1], args[0], info.Damaged)
			case payload:
				_, err = c.out.Write(info.Job.Payload)
				return err
			case !headers:
				info.Job.Headers = nil
			}
			unattended, err := c.unattended(ctx, info)
			if err != nil {
				return err
			}
			v := jobOf(info)
			v.Cause = string(unattended.Cause)
			if c.json {
				return c.object(v)
			}
			held := ""
			if v.Cause != "" {
				held = whatHolds(unattended, unattended.At, true)
			}
			return c.printJob(v, held, info.History)
		},
	}.command(term)
}

// unattended explains a job if nobody sees to it, and nothing else.
func (c *conn) unattended(ctx context.Context, i throttle.JobInfo) (e throttle.Explanation, err error) {
	switch i.State {
	case throttle.Waiting, throttle.Delayed, throttle.Released:
		e, err = c.queue.ExplainJob(ctx, i.Key, i.ID)
	}
	switch {
	case errors.Is(err, throttle.ErrNoJob): // it has ended since
		return throttle.Explanation{}, nil
	case err == nil && e.Cause != throttle.ByScheduler && e.Cause != throttle.ByWorkers:
		return throttle.Explanation{}, nil
	}
	return e, err
}

// A jobView is what jobs get --json prints.
type jobView struct {
	Key                string            `json:"key"`
	ID                 string            `json:"id"`
	State              string            `json:"state"`
	Position           int64             `json:"position"` // in the line; 0 outside it
	EstimatedDeparture string            `json:"estimated_departure,omitempty"`
	Cause              string            `json:"cause,omitempty"` // as explain tells it, if nobody sees to the job
	Type               string            `json:"type"`
	Priority           int               `json:"priority"`
	Cost               int64             `json:"cost"`
	Attempts           int               `json:"attempts"`               // begun
	MaxAttempts        int               `json:"max_attempts,omitempty"` // the worker's default
	Timeout            string            `json:"timeout,omitempty"`      // the worker's default
	Last               bool              `json:"last"`                   // there will be no other attempt
	Enqueued           string            `json:"enqueued,omitempty"`
	At                 string            `json:"at,omitempty"`
	Expires            string            `json:"expires,omitempty"`
	ExpiresFirst       bool              `json:"expires_first,omitempty"` // before it leaves, as estimated
	Reason             string            `json:"reason,omitempty"`
	Damaged            string            `json:"damaged,omitempty"`
	PayloadBytes       int               `json:"payload_bytes"`
	Headers            map[string]string `json:"headers,omitempty"`
	History            []attemptView     `json:"history"`
}

type attemptView struct {
	Attempt  int    `json:"attempt"`
	Departed string `json:"departed"`
	Ended    string `json:"ended"`
	Outcome  string `json:"outcome"`
	Error    string `json:"error,omitempty"`
}

func jobOf(i throttle.JobInfo) jobView {
	v := jobView{
		Key: i.Key, ID: i.ID, State: i.State,
		Position: i.Position, EstimatedDeparture: stampUnlessZero(i.EstimatedDeparture),
		Type: i.Job.Type, Priority: i.Job.Priority, Cost: i.Job.Cost,
		Attempts: i.Attempts, MaxAttempts: i.Job.MaxAttempts, Timeout: briefUnlessZero(i.Job.Timeout), Last: i.Last,
		Enqueued: stampUnlessZero(i.Enqueued), At: stampUnlessZero(i.At), Expires: stampUnlessZero(i.Expires), ExpiresFirst: i.ExpiresFirst,
		Reason: i.Reason, PayloadBytes: len(i.Job.Payload), Headers: i.Job.Headers, History: []attemptView{},
	}
	if i.Damaged != nil {
		v.Damaged = i.Damaged.Error()
	}
	for _, a := range i.History {
		v.History = append(v.History, attemptView{a.Number, stamp(a.Departed), stamp(a.Ended), a.Outcome, a.Error})
	}
	return v
}

// atNames are what the instant of a job is, by its state.
var atNames = map[string]string{
	throttle.Delayed: "delayed until", throttle.Running: "slot", throttle.Dead: "ended", throttle.Done: "ended",
}

func (c *conn) printJob(v jobView, held string, history []throttle.Attempt) error {
	rows := [][]string{{"key", shown(v.Key)}, {"id", shown(v.ID)}, {"state", v.State}}
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, []string{name, text})
		}
	}
	if v.Position > 0 {
		add("position", fmt.Sprint(v.Position))
	}
	add(atNames[v.State], v.At)
	if v.EstimatedDeparture != "" && v.State != throttle.Running {
		add("departure", v.EstimatedDeparture+" (estimated)")
	}
	add("held", held)
	add("enqueued", v.Enqueued)
	switch {
	case v.ExpiresFirst && v.Attempts == 0:
		add("expires", v.Expires+" (before it leaves, as estimated)")
	case v.ExpiresFirst:
		add("deadline", v.Expires+" (before it leaves, as estimated)")
	case v.Expires != "" && v.Attempts == 0:
		add("expires", v.Expires+" (unless it leaves before)")
	case v.Expires != "":
		add("deadline", v.Expires)
	}
	if v.Type != "" {
		add("type", shown(v.Type))
	}
	add("priority", fmt.Sprint(v.Priority))
	add("cost", fmt.Sprint(v.Cost))
	add("attempts", attemptsText(v))
	add("timeout", v.Timeout)
	if v.Reason != "" {
		add("reason", shown(v.Reason))
	}
	add("damaged", v.Damaged)
	add("payload", count(int64(v.PayloadBytes), "byte"))
	if err := c.table(rows); err != nil {
		return err
	}
	if err := c.printAttempts(history); err != nil {
		return err
	}
	return c.printHeaders(v.Headers)
}

func attemptsText(v jobView) string {
	text := fmt.Sprint(v.Attempts)
	if v.MaxAttempts > 0 {
		text += fmt.Sprintf(" of at most %d", v.MaxAttempts)
	}
	if v.Last && v.State != throttle.Dead && v.State != throttle.Done {
		text += ", cancelled: there will be no other"
	}
	return text
}

func (c *conn) printAttempts(list []throttle.Attempt) error {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"ATTEMPT", "DEPARTED", "TOOK", "OUTCOME", "ERROR"}}
	for _, a := range list {
		text := none
		if a.Error != "" {
			text = shown(a.Error)
		}
		took := brief(max(0, a.Ended.Sub(a.Departed)).Round(time.Millisecond))
		rows = append(rows, []string{fmt.Sprint(a.Number), stamp(a.Departed), took, shown(a.Outcome), text})
	}
	return c.titled("Attempts that ended:", rows)
}

func (c *conn) printHeaders(headers map[string]string) error {
	if len(headers) == 0 {
		return nil
	}
	rows := [][]string{{"HEADER", "VALUE"}}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		rows = append(rows, []string{shown(name), shown(headers[name])})
	}
	return c.titled("Headers:", rows)
}
