package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
)

const verifyHelp = `Verify replays what has left under a key and proves that no window of time broke the policy
in force: neither its rate and burst, nor its quotas, nor its hours. It needs the history of
the key, which a policy keeps whose history is above 0: see throttled policy set --history.

In every window of length t, cost <= burst + rate × t has to hold for the slots that jobs
departed at. A window that broke it is printed with what left in it and what may have; one
excess is one window. Jobs that an operator let go past the limit are charged, and listed,
but break nothing themselves. Nothing is known of what left before the history begins.

The plot has two parts: what has departed so far, and the most that may have; and below it
what is in the bucket, and the burst. Windows that broke the policy are marked, and so
are jobs that an operator let go.

A key of which nothing is kept, or nothing that can be judged, is invalid input.`

const verifyExamples = `  throttled verify billing
  throttled verify billing --plot billing.svg
  throttled verify billing --json | jq '.violations[]'`

const plotFlag = "plot"

func newVerify(term terminal) *cobra.Command {
	var file string
	return request{
		use: "verify KEY [flags]", short: "Prove that what left under a key kept to its policy",
		long: verifyHelp, example: verifyExamples,
		codes: "\n  1    a window broke the policy in force",
		args:  []string{"KEY"},
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&file, plotFlag, "", "draw it to a `FILE`, whose name ends in .svg or .png")
		},
		check: func(args []string, set *pflag.FlagSet) error {
			if set.Changed(plotFlag) && chart.Format(file) == "" {
				return fmt.Errorf("--plot %q is not allowed: want the name of a file that ends in .svg or .png", file)
			}
			return exactKey(args, set)
		},
		run: func(ctx context.Context, c *conn, args []string) error {
			h, err := c.queue.History(ctx, args[0])
			if errors.Is(err, throttle.ErrNoHistory) {
				return fail(exitInvalid, "there is no history of key %q: nothing departed within a day, or its policy keeps none; "+
					"throttled policy set KEY --history N has it keep the last N departures", args[0])
			}
			if err != nil {
				return err
			}
			return c.verify(h, file)
		},
	}.command(term)
}

func (c *conn) verify(h throttle.History, file string) error {
	v := h.Verify()
	if v.Departures == 0 && v.Unjudged > 0 {
		return fail(exitInvalid, "history of key %q: nobody knows the policy of the departures that are kept: "+
			"nothing can be judged", h.Key)
	}
	if file != "" {
		if err := drawVerification(file, h, v); err != nil {
			return fail(exitInvalid, "--plot: %w", err)
		}
	}
	print := c.printVerification
	if c.json {
		print = func(h throttle.History, v throttle.Verification) error { return c.object(verificationOf(h, v)) }
	}
	if err := print(h, v); err != nil || v.OK() {
		return err
	}
	return &failure{code: exitFailed} // what broke has been printed
}

func (c *conn) printVerification(h throttle.History, v throttle.Verification) error {
	rows := [][]string{{"key", shown(v.Key)}}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{name, fmt.Sprintf(format, args...)})
	}
	if v.Departures > 0 {
		add("from", "%s", stamp(v.From))
		add("to", "%s (%s)", stamp(v.To), brief(v.To.Sub(v.From).Round(time.Millisecond)))
	}
	add("departed", "%s", departedText(v))
	if v.Departures > 0 {
		add("allowed", "%s units, burst + rate × time: %s of it was used", units(v.Allowed), percent(v.Used))
	}
	if v.Busy > 0 {
		add("busy", "for %s, at %s of the rate", brief(v.Busy.Round(time.Millisecond)), percent(v.Pace))
	}
	for _, u := range v.Quotas {
		add("quota", "%v: %s", u.Quota, quotaText(u))
	}
	if v.Unjudged > 0 {
		add("not judged", "%s whose policy is not known", counted(v.Unjudged, "departure"))
	}
	if v.Damaged > 0 {
		add("damaged", "%s that cannot be read", counted(v.Damaged, "entry"))
	}
	for _, what := range v.Unchecked {
		add("not checked", "%s", shown(what))
	}
	add("verdict", "%s", verdictText(v))
	if err := c.table(rows); err != nil {
		return err
	}
	if err := c.printViolations(v); err != nil {
		return err
	}
	return c.printForced(h)
}

func departedText(v throttle.Verification) string {
	text := fmt.Sprintf("%s of %s units", counted(v.Departures, "job"), units(v.Cost))
	var more []string
	if v.Forced > 0 {
		more = append(more, fmt.Sprintf("%d forced", v.Forced))
	}
	if v.Settlements > 0 {
		more = append(more, fmt.Sprintf("%d dearer than charged", v.Settlements))
	}
	if len(more) > 0 {
		text += ", " + strings.Join(more, ", ")
	}
	return text
}

func quotaText(u throttle.QuotaUse) string {
	if u.From.IsZero() {
		return "nothing"
	}
	used := percent(u.Most / float64(u.Quota.Limit))
	return fmt.Sprintf("at most %s (%s), from %s to %s", units(u.Most), used, stamp(u.From), stamp(u.To))
}

func verdictText(v throttle.Verification) string {
	switch {
	case !v.OK():
		return counted(len(v.Violations), "window") + " broke the policy in force"
	case len(v.Unchecked) > 0:
		return "clean: no window broke what could be checked of the policy in force"
	}
	return "clean: no window broke the policy in force"
}

func (c *conn) printViolations(v throttle.Verification) error {
	if v.OK() {
		return nil
	}
	rows := [][]string{{"WHAT", "FROM", "TO", "COST", "ALLOWED", "TOO EARLY", "JOBS", "POLICY"}}
	for _, b := range v.Violations {
		ids := make([]string, len(b.Jobs))
		for i, id := range b.Jobs {
			ids[i] = shown(id)
		}
		if b.Early > len(ids) {
			ids = append(ids, "…")
		}
		rows = append(rows, []string{
			b.What, exactStamp(b.From), exactStamp(b.To), units(b.Cost), units(b.Allowed),
			fmt.Sprint(b.Early), strings.Join(ids, " "), viewOf(b.Policy, "").summary(),
		})
	}
	return c.titled("Windows that broke the policy in force:", rows)
}

// mostForced is how many of the forced departures are printed for people.
const mostForced = 20

func (c *conn) printForced(h throttle.History) error {
	rows := [][]string{{"AT", "ID", "KEY", "COST"}}
	more := 0
	for _, f := range forcedOf(h) {
		if len(rows) > mostForced {
			more++
			continue
		}
		rows = append(rows, []string{f.At, shown(f.ID), shown(f.Key), fmt.Sprint(f.Cost)})
	}
	if len(rows) == 1 {
		return nil
	}
	if err := c.titled("Jobs that were let go past the limit:", rows); err != nil || more == 0 {
		return err
	}
	return c.line("and %d more, see --json", more)
}

// counted is "1 job" or "2 jobs".
func counted(n int, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ies"
	default:
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// units is a cost to the thousandth.
func units(cost float64) string {
	return strconv.FormatFloat(math.Round(cost*1000)/1000, 'f', -1, 64)
}

// percent is a share to the tenth.
func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + "%"
}

// exactStamp is stamp with microseconds: a window may be that short.
func exactStamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
