package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirq/weir/throttle"
)

const explainHelp = `Explain tells what governs a key and what holds its next job, or the one with an ID, at
this moment:
  the jobs that it has, and what the job waits for, at which key and until when
  the policies that could govern it in the order of precedence, with the one in force
  the chain of caps that a job must fit: the key and its parents, with the level of each
What holds the line holds every job in it; one that is not the next waits for those before
it as well, and throttled jobs get tells when it is going to leave.

Causes in --json are rate, quota, parent (its turn among those that share one), pause,
cooldown, hours, in_flight, order (the key is ordered, and an earlier job has not ended),
delay (all jobs are delayed), workers (released jobs wait and no worker takes them),
scheduler (it could be released, and nobody does), idle (there is none), and none for a
job that is about to leave.`

const explainExamples = `  throttled explain billing
  throttled explain billing evt_7
  throttled explain tenant-7 --json | jq .cause`

func newExplain(term terminal) *cobra.Command {
	return request{
		use: "explain KEY [ID] [flags]", short: "Tell what governs a key and what holds its jobs",
		long: explainHelp, example: explainExamples,
		args: []string{"KEY", "[ID]"}, check: exactKey,
		run: func(ctx context.Context, c *conn, args []string) (err error) {
			var e throttle.Explanation
			if len(args) == 1 {
				e, err = c.queue.Explain(ctx, args[0])
			} else {
				e, err = c.queue.ExplainJob(ctx, args[0], args[1])
			}
			if err != nil {
				return err
			}
			e.Candidates[0].Policy, _ = inForce(e)
			if c.json {
				return c.object(explanationOf(e))
			}
			return c.printExplanation(e, len(args) == 2)
		},
	}.command(term)
}

// printExplanation prints it for people; asked tells that they asked for the job.
func (c *conn) printExplanation(e throttle.Explanation, asked bool) error {
	title := "next job"
	if asked {
		title = "job"
	}
	rows := [][]string{
		{"key", shown(e.Key)},
		{"jobs", fmt.Sprintf("%d waiting, %d delayed, %d in flight", e.Waiting, e.Delayed, e.InFlight)},
		{title, jobText(e) + whatHolds(e, e.At, asked)},
	}
	if holds := holdsOf(e, e.At); holds != "" {
		rows = append(rows, []string{"held", holds})
	}
	if l := e.Limit; len(e.Chain) > 0 && l != e.Chain[0].Policy.Limit {
		rows = append(rows, []string{"adapted", fmt.Sprintf("to %.3g/s, burst %d, as the other side has it", float64(l.Rate)/l.Period.Seconds(), l.Burst)})
	}
	if err := c.table(rows); err != nil {
		return err
	}

	rows = [][]string{append([]string{"POLICY", "SOURCE", "IN FORCE"}, titles()...)}
	for i, candidate := range e.Candidates {
		inForce := ""
		if i == 0 {
			inForce = "yes"
		}
		v := viewOf(candidate.Policy, candidate.Source)
		rows = append(rows, append([]string{shown(v.Key), v.Source, inForce}, v.cells()...))
	}
	if err := c.titled("Policies that could govern it, in the order of precedence:", rows); err != nil {
		return err
	}

	rows = [][]string{{"KEY", "LEVEL", "RATE", "BURST", "MAX IN FLIGHT", "QUOTAS"}}
	for _, l := range e.Chain {
		v := viewOf(l.Policy, "")
		rows = append(rows, append([]string{shown(l.Key), fmt.Sprintf("%.3g", l.Level)}, v.cells()[:4]...))
	}
	return c.titled("Caps that a job must fit, from the key up to its last parent:", rows)
}

func (c *conn) titled(title string, rows [][]string) error {
	if err := c.line("\n%s", title); err != nil {
		return err
	}
	return c.table(rows)
}

// jobText names the job that an explanation is about, to begin a sentence with.
func jobText(e throttle.Explanation) string {
	switch {
	case e.Job == "":
		return ""
	case e.Position > 1:
		return fmt.Sprintf("%s (%s, position %d) ", shown(e.Job), e.JobState, e.Position)
	}
	return fmt.Sprintf("%s (%s) ", shown(e.Job), e.JobState)
}

// whatHolds tells what a job waits for; asked tells that it is not just any of its key.
func whatHolds(e throttle.Explanation, now time.Time, asked bool) string {
	holder := shown(e.Holder)
	text, known := map[throttle.Cause]string{
		throttle.ByNothing:  "is about to leave",
		throttle.ByRate:     "waits for the rate of " + holder,
		throttle.ByQuota:    "waits for a quota of " + holder,
		throttle.ByParent:   "waits for its turn under " + holder,
		throttle.ByPause:    "is kept by a pause, at " + holder,
		throttle.ByCoolDown: "waits for the end of a cool-down, at " + holder,
		throttle.ByCircuit:  "waits, as calls of " + holder + " fail, for one to be tried again",
		throttle.ByDisabled: "is kept, as calls of " + holder + " failed for too long: throttled resume " + holder + " ends it",
		throttle.ByHours:    "waits for the hours of " + holder,
		throttle.ByInFlight: "waits for one in flight to end, at " + holder,
		throttle.ByOrder: "waits for an earlier job to end, as " + holder +
			" is ordered: one that fails holds the line until it is done or given up",
		throttle.ByDelay:     "is delayed, as all are",
		throttle.ByWorkers:   "waits, as no worker takes the jobs that were released: is one running for their pool?",
		throttle.ByScheduler: "waits, as no scheduler releases it: is one running?",
		throttle.ByIdle:      "there is none",
	}[e.Cause]
	switch {
	case !known:
		text = shown(string(e.Cause)) + " of " + holder
	case e.Cause == throttle.ByDelay && asked:
		text = "is delayed"
	case e.Cause == throttle.ByNothing && e.JobState == throttle.Released:
		text = "is on its way to a worker"
	case e.Cause == throttle.ByNothing && e.JobState == throttle.Running:
		text = "is in a worker's hands"
	}
	if e.Cause != throttle.ByNothing && !e.Until.IsZero() {
		text += ", until " + instant(e.Until, now)
	}
	return text
}

// holdsOf lists the holds that a key is under itself.
func holdsOf(e throttle.Explanation, now time.Time) string {
	var holds []string
	if e.Paused {
		holds = append(holds, "paused")
	}
	if e.Draining {
		holds = append(holds, "draining")
	}
	if !e.CoolUntil.IsZero() {
		holds = append(holds, "cooling down until "+instant(e.CoolUntil, now))
	}
	return strings.Join(holds, ", ")
}

// instant is a time and how far ahead it is.
func instant(at, now time.Time) string {
	in := at.Sub(now).Round(time.Millisecond)
	if in >= time.Second {
		in = in.Round(100 * time.Millisecond)
	}
	if in <= 0 {
		return stamp(at) + " (now)"
	}
	return fmt.Sprintf("%s (in %s)", stamp(at), brief(in))
}
