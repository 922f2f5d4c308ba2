package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
)

const planHelp = `Plan tells when a line of jobs would leave under a policy: the first, the last, and each
tenth of them. The policy is that in force for KEY, with its parents, as changed by flags;
without a KEY it is what the flags say, and no Redis is asked. Nothing is stored.

The jobs are all there at the start, and nothing else is, neither under the key nor
below its parents; quotas are unused, no job fails, and there are workers enough. How many
may be in flight counts only with --run, and the ramp of a policy does not. throttled jobs
get tells when a job leaves that is there already.

The plot shows how many have left by when.`

const planExamples = `  throttled plan billing --jobs 10000
  throttled plan billing --jobs 10000 --rate 50/s --no-quotas
  throttled plan --rate 20/s --quota 9000/h --open 'mon-fri 09:00-18:00' --jobs 100000 --plot plan.svg
  throttled plan crm --jobs 500 --run 3s --start 2026-12-01T06:00:00Z --json | jq -r .last`

// planFlags are those of plan.
type planFlags struct {
	policy policyFlags
	edits  []edit
	parent string // a new one; empty for that of the policy

	request throttle.PlanRequest
	start   string
	plot    string
}

// planned are the flags of policy set that make a difference to a plan.
var planned = []string{
	"rate", "burst", "max-in-flight", "quota", "parent", "open", "zone", "ordered", "no-quotas", "no-parent", "no-hours",
}

func (f *planFlags) register(set *pflag.FlagSet) {
	set.Int64Var(&f.request.Jobs, "jobs", 0, fmt.Sprintf("`N` jobs in the line, 1 to %d", throttle.MaxPlanJobs))
	set.Int64Var(&f.request.Cost, "cost", 1, "`UNITS` of the limit that each of them uses")
	set.DurationVar(&f.request.Run, "run", 0, "`DURATION` that a job runs on average; with it the most in flight counts")
	set.StringVar(&f.start, "start", "", "`TIME` at which they begin to wait, in RFC 3339 (default now)")
	set.StringVar(&f.plot, plotFlag, "", "draw it to a `FILE`, whose name ends in .svg or .png")
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.policy.register(all)
	for _, name := range planned {
		set.AddFlag(all.Lookup(name))
	}
}

func (f *planFlags) check(args []string, set *pflag.FlagSet) (err error) {
	switch {
	case !set.Changed("jobs"):
		return errors.New("--jobs is missing: give the number of jobs in the line")
	case set.Changed(plotFlag) && chart.Format(f.plot) == "":
		return fmt.Errorf("--plot %q is not allowed: want the name of a file that ends in .svg or .png", f.plot)
	}
	if set.Changed("start") {
		if f.request.Start, err = time.Parse(time.RFC3339, f.start); err != nil {
			return fmt.Errorf("--start %q is not allowed: want a time in RFC 3339, such as 2026-12-01T06:00:00Z", f.start)
		}
	}
	if err := bounded("cost", f.request.Cost, throttle.MaxCost); err != nil {
		return err
	}
	// What is not about the policy is refused here, before Redis is asked for one.
	trial := f.request
	trial.Policies = []throttle.Policy{throttle.DefaultPolicy}
	if _, err := throttle.Plan(trial); err != nil {
		var refused *throttle.InvalidError
		if errors.As(err, &refused) && refused.Field == "start" {
			return fmt.Errorf("--start %q is not allowed: want %s", f.start, refused.Allowed)
		}
		return asFlag(err, "jobs", "run")
	}
	if len(args) == 0 && !set.Changed("rate") {
		return errors.New("there is no policy to plan with: --rate is needed, or a KEY")
	}
	if slices.ContainsFunc(planned, set.Changed) {
		if f.edits, err = f.policy.edits(set.Changed); err != nil {
			return err
		}
	}
	if set.Changed("parent") {
		f.parent = f.policy.parent
	}
	if len(args) == 0 {
		return nil
	}
	return exactKey(args, set)
}

func newPlan(term terminal) *cobra.Command {
	var f planFlags
	return request{
		use: "plan [KEY] --jobs N [flags]", short: "Tell when a line of jobs would leave",
		long: planHelp, example: planExamples,
		args: []string{"[KEY]"}, flags: f.register, check: f.check,
		offline: func(args []string, _ *pflag.FlagSet) bool { return len(args) == 0 && f.parent == "" },
		run: func(ctx context.Context, c *conn, args []string) (err error) {
			if f.request.Policies, err = c.policiesOf(ctx, strings.Join(args, ""), f); err != nil {
				return err
			}
			if f.request.Start.IsZero() {
				if f.request.Start, err = c.startOfPlan(ctx); err != nil {
					return err
				}
			}
			return c.plan(f.request, f.plot)
		},
	}.command(term)
}

// startOfPlan is now, by the clock of Redis if there is one.
func (c *conn) startOfPlan(ctx context.Context) (now time.Time, err error) {
	if now = time.Now(); c.client != nil {
		now, err = c.now(ctx)
	}
	return now.Truncate(time.Millisecond), err
}

// policiesOf are the policy of a key, or that of the flags alone if it is empty, as the
// flags change it, and those of its parents.
func (c *conn) policiesOf(ctx context.Context, key string, f planFlags) ([]throttle.Policy, error) {
	policies := []throttle.Policy{throttle.DefaultPolicy}
	if key != "" {
		var err error
		if policies, err = c.chain(ctx, key); err != nil {
			return nil, err
		}
	}
	own := policies[0]
	for _, change := range f.edits {
		if err := change(&own); err != nil {
			return nil, fail(exitInvalid, "%w", err)
		}
	}
	parents := policies[1:]
	switch {
	case own.Parent == "":
		parents = nil
	case f.parent != "":
		var err error
		if parents, err = c.chain(ctx, f.parent); err != nil {
			return nil, err
		}
	}
	return append([]throttle.Policy{own}, parents...), nil
}

// chain are the policies in force for a key and its parents.
func (c *conn) chain(ctx context.Context, key string) ([]throttle.Policy, error) {
	e, err := c.queue.Explain(ctx, key)
	if err != nil {
		return nil, err
	}
	policies := make([]throttle.Policy, len(e.Chain))
	for i, l := range e.Chain {
		policies[i] = l.Policy
		policies[i].Key = l.Key
	}
	return policies, nil
}

func (c *conn) plan(r throttle.PlanRequest, file string) error {
	s, err := throttle.Plan(r)
	if err != nil {
		return err
	}
	if file != "" {
		if err := drawPlan(file, r); err != nil {
			return fail(exitInvalid, "--plot: %w", err)
		}
	}
	if c.json {
		return c.object(planOf(r, s))
	}
	return c.printPlan(r, s)
}

func (c *conn) printPlan(r throttle.PlanRequest, s throttle.Schedule) error {
	own := viewOf(r.Policies[0], "")
	rows := [][]string{{"policy", own.summary()}}
	for _, p := range r.Policies[1:] {
		v := viewOf(p, "")
		rows = append(rows, []string{"below " + shown(p.Key), v.summary()})
	}
	line := fmt.Sprintf("%s of cost %d, waiting from %s", count(r.Jobs, "job"), r.Cost, stamp(r.Start))
	if r.Run > 0 {
		line += ", each running for " + brief(r.Run)
	}
	rows = append(rows, []string{"line", line},
		[]string{"first", departs(s.First, r.Start)}, []string{"last", departs(s.Last, r.Start)})
	if err := c.table(rows); err != nil {
		return err
	}
	rows = [][]string{{"JOBS", "SHARE", "AT", "AFTER"}}
	for _, step := range s.Steps {
		at, after := stamp(step.At), brief(step.At.Sub(r.Start).Round(time.Millisecond))
		if isForever(step.At, r.Start) {
			at, after = none, never
		}
		rows = append(rows, []string{fmt.Sprint(step.Jobs), percent(float64(step.Jobs) / float64(r.Jobs)), at, after})
	}
	return c.titled("Departed by then:", rows)
}

// never is what a plan tells of all that takes longer than it looks ahead.
const never = "158 years or more"

// isForever tells whether an instant stands for all later ones, see throttle.Plan.
func isForever(at, start time.Time) bool { return at.Sub(start) >= 158*365*24*time.Hour }

func departs(at, start time.Time) string {
	if isForever(at, start) {
		return never + " after that"
	}
	return instant(at, start)
}

// A planView is a plan as --json prints it.
type planView struct {
	Policies []policyView   `json:"policies"` // from the key up
	Jobs     int64          `json:"jobs"`
	Cost     int64          `json:"cost"`
	Start    string         `json:"start"`
	First    string         `json:"first"`
	Last     string         `json:"last"`
	Seconds  float64        `json:"seconds"` // from the start to the last one
	Steps    []planStepView `json:"steps"`
}

type planStepView struct {
	Jobs    int64   `json:"jobs"` // departed by then
	At      string  `json:"at"`
	Seconds float64 `json:"seconds"` // since the start
}

func planOf(r throttle.PlanRequest, s throttle.Schedule) planView {
	v := planView{
		Jobs: r.Jobs, Cost: r.Cost, Start: stamp(r.Start),
		First: stamp(s.First), Last: stamp(s.Last), Seconds: s.Last.Sub(r.Start).Seconds(),
	}
	for _, p := range r.Policies {
		v.Policies = append(v.Policies, viewOf(p, ""))
	}
	for _, step := range s.Steps {
		v.Steps = append(v.Steps, planStepView{step.Jobs, stamp(step.At), step.At.Sub(r.Start).Seconds()})
	}
	return v
}
