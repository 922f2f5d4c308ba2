package throttle

import (
	"fmt"
	"time"
)

// MaxPlanJobs is the most jobs of one plan.
const MaxPlanJobs = 1_000_000_000

// planSteps is how many parts a schedule is told in.
const planSteps = 10

// A PlanRequest asks what policies would do with a line of jobs.
type PlanRequest struct {
	// Policies are that of the jobs' key and those of its parents, from the key up: 1 to
	// MaxLevels. They are not looked up anywhere, and their names do not count.
	Policies []Policy
	Jobs     int64     // 1 to MaxPlanJobs, all of them waiting from the start
	Cost     int64     // of each job in cost units; 0 means 1, at most MaxCost
	Start    time.Time // years 1970 to 2199; zero means now

	// Run is the mean time that a run takes. With it the most in flight of the key's own
	// policy counts; 0 means that it does not. At most MaxPeriod.
	Run time.Duration
}

// A Schedule is when jobs depart.
type Schedule struct {
	First, Last time.Time // departures
	// Steps are when none (at First), a tenth, two tenths and so on of the jobs have
	// departed; fewer of them if there are fewer than ten jobs.
	Steps []PlanStep
}

// A PlanStep is how many jobs have departed by then.
type PlanStep struct {
	Jobs int64
	At   time.Time
}

// Plan tells when a line of jobs would depart that begins to wait at an instant, from
// buckets and quotas that were idle until then: by what scripts do, if nothing else is in
// the line or below the parents, no job fails, and workers are there. Instants are exact
// to milliseconds for rates, and to 1 % of the wait or 250 ms, whichever is more, where
// there are quotas, hours or places in flight. Where they end, hours or a quota may turn
// one job in a hundred into the next opening or window too early or too late. What would
// take more than 158 years is told as 158 years.
//
// The error is an [*InvalidError] whose Field is a path such as "policies[0].rate".
func Plan(r PlanRequest) (Schedule, error) {
	if r.Cost == 0 {
		r.Cost = 1
	}
	if r.Start.IsZero() {
		r.Start = time.Now()
	}
	if err := r.validate(); err != nil {
		return Schedule{}, err
	}
	o := outlook{now: r.Start.UnixMicro()}
	for _, p := range r.Policies {
		o.stages = append(o.stages, stage{policy: p.WithDefaults(), share: 1})
	}
	o.stages[0].run = r.Run
	f := newForecast(o)
	departure := func(job int64) time.Time {
		at, _ := f.departure(float64(job)*float64(r.Cost), job, r.Cost)
		return time.UnixMicro(at).In(r.Start.Location())
	}
	var s Schedule
	s.First = departure(0)
	s.Steps = []PlanStep{{At: s.First}}
	for i := range int64(planSteps) {
		n := (r.Jobs*(i+1) + planSteps - 1) / planSteps
		if n == s.Steps[len(s.Steps)-1].Jobs {
			continue
		}
		s.Last = departure(n - 1)
		s.Steps = append(s.Steps, PlanStep{Jobs: n, At: s.Last})
	}
	return s, nil
}

func (r PlanRequest) validate() error {
	if n := len(r.Policies); n < 1 || n > MaxLevels {
		return invalid("policies", n, "1 to %d: the key's own and those of its parents", MaxLevels)
	}
	for i, p := range r.Policies {
		err := p.validateValues()
		if err == nil {
			err = p.validateZones()
		}
		if err != nil {
			return within(fmt.Sprintf("policies[%d]", i), err)
		}
	}
	if r.Jobs < 1 || r.Jobs > MaxPlanJobs {
		return invalid("jobs", r.Jobs, "1 to %d", int64(MaxPlanJobs))
	}
	if r.Cost < 1 || r.Cost > MaxCost {
		return invalid("cost", r.Cost, "1 to %d, or 0 for 1", int64(MaxCost))
	}
	if year := r.Start.UTC().Year(); year < 1970 || year > 2199 {
		return invalid("start", r.Start, "an instant from 1970 to 2199")
	}
	if r.Run < 0 || r.Run > MaxPeriod {
		return invalid("run", r.Run, "0 to %v", MaxPeriod)
	}
	return nil
}
