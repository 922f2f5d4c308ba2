package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
)

// waitingFlags are those of policy set about how jobs wait and what is kept of them. A
// value of 0 takes a field away.
type waitingFlags struct {
	ordered                  bool
	ageing, jobTTL, keepDone time.Duration
	maxWaiting               int64
	overflow                 string
	history                  int
}

func (f *waitingFlags) register(set *pflag.FlagSet) {
	span := func(in *time.Duration, name, usage string, shortest, longest time.Duration, zero string) {
		bounds := fmt.Sprintf("%s to %s; 0 for %s", brief(shortest), brief(longest), zero)
		set.DurationVar(in, name, 0, "`DURATION` "+usage+", "+bounds)
	}
	set.BoolVar(&f.ordered, "ordered", false,
		"let one job go at a time, and one that fails hold the line until it is done or given up; --ordered=false ends that")
	span(&f.ageing, "ageing", "that a job waits to gain one priority",
		throttle.MinAgeing, throttle.MaxAgeing, "the default of "+brief(throttle.DefaultAgeing))
	span(&f.jobTTL, "job-ttl", "that jobs which do not say may wait for their first attempt",
		throttle.MinTTL, throttle.MaxTTL, "no end")
	set.Int64Var(&f.maxWaiting, "max-waiting", 0,
		fmt.Sprintf("`N` waiting and delayed jobs at once, up to %d; 0 for no bound", throttle.MaxWaitingBound))
	set.StringVar(&f.overflow, "overflow", "",
		fmt.Sprintf("`ACTION` on more jobs than --max-waiting: %s (the default), %s or %s",
			throttle.Refuse, throttle.DropOldest, throttle.DropNewest))
	set.IntVar(&f.history, "history", 0,
		fmt.Sprintf("`N` departures to keep for throttled verify, up to %d; 0 for none", throttle.MaxHistory))
	span(&f.keepDone, "keep-done", "for which jobs that are done can be looked up and replayed",
		throttle.MinKeepDone, throttle.MaxKeepDone, "none")
}

func (f *waitingFlags) edits() []flagEdit {
	return []flagEdit{
		{"ordered", alone(func(p *throttle.Policy) { p.Ordered = f.ordered })},
		{"ageing", alone(func(p *throttle.Policy) { p.Ageing = f.ageing })},
		{"job-ttl", alone(func(p *throttle.Policy) { p.JobTTL = f.jobTTL })},
		{"max-waiting", alone(f.setMaxWaiting)},
		{"overflow", f.editOverflow},
		{"history", alone(func(p *throttle.Policy) { p.History = f.history })},
		{"keep-done", alone(func(p *throttle.Policy) { p.KeepDone = f.keepDone })},
	}
}

// alone is an edit of a field whose bounds do not depend on other fields.
func alone(do func(*throttle.Policy)) func() (edit, error) {
	return func() (edit, error) {
		p := throttle.DefaultPolicy
		do(&p)
		return set(do), p.Validate()
	}
}

// setMaxWaiting takes the overflow away together with the bound that it is about.
func (f *waitingFlags) setMaxWaiting(p *throttle.Policy) {
	if p.MaxWaiting = f.maxWaiting; p.MaxWaiting == 0 {
		p.Overflow = ""
	}
}

func (f *waitingFlags) editOverflow() (edit, error) {
	overflow, err := throttle.ParseOverflow(f.overflow)
	return set(func(p *throttle.Policy) { p.Overflow = overflow }), err
}
