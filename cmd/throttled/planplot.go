package main

import (
	"fmt"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
)

// planParts is how many parts of a line are told apart at least; where nothing leaves for a
// while, planDepth says how often a part is halved to find out between which jobs.
const (
	planParts = 100
	planDepth = 8
)

// drawPlan writes a plot of a plan to an SVG or PNG file.
func drawPlan(file string, r throttle.PlanRequest) error {
	points, unit, err := planCurve(r)
	if err != nil {
		return err
	}
	p := chart.New(planTitle(r), unitNames[unit]+" since "+stamp(r.Start), "jobs")
	if _, err := chart.AddLine(p, "", points, chart.Blue, 2); err != nil {
		return err
	}
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, float64(r.Jobs)*1.05
	return chart.Write(file, plotWidth, plotHeight, p)
}

// planTitle is of two lines: what leaves, and under which policy.
func planTitle(r throttle.PlanRequest) string {
	whose := ""
	if own := r.Policies[0].Key; own != throttle.AnyKey {
		whose = " of " + plotText(own)
	}
	policy := viewOf(r.Policies[0], "").summary()
	const most = 120
	if long := []rune(policy); len(long) > most {
		policy = string(long[:most-1]) + "…"
	}
	return fmt.Sprintf("%s%s: departed by then\n%s", count(r.Jobs, "job"), whose, policy)
}

// A planPoint is how many jobs have departed when.
type planPoint struct {
	jobs  int64
	after time.Duration // since the start
}

// planCurve is how many jobs have departed by when. The beginning of a line departs as the
// whole of it does, so each point is a shorter plan.
func planCurve(r throttle.PlanRequest) (points plotter.XYs, unit time.Duration, err error) {
	at := func(jobs int64) (p planPoint) {
		if err != nil {
			return p
		}
		part, first := r, jobs == 0
		part.Jobs = max(1, jobs)
		var s throttle.Schedule
		s, err = throttle.Plan(part)
		if first {
			return planPoint{0, s.First.Sub(r.Start)}
		}
		return planPoint{jobs, s.Last.Sub(r.Start)}
	}
	last := at(r.Jobs)
	curve := []planPoint{at(0)}
	var fill func(to planPoint, depth int)
	fill = func(to planPoint, depth int) {
		from := curve[len(curve)-1]
		half := from.jobs + (to.jobs-from.jobs)/2
		if depth > 0 && half > from.jobs && to.after-from.after > last.after/planParts {
			fill(at(half), depth-1)
			fill(to, depth-1)
			return
		}
		if !isForever(r.Start.Add(from.after), r.Start) { // all that is later is told as the same
			curve = append(curve, to)
		}
	}
	for i := int64(1); i <= planParts; i++ {
		fill(at((r.Jobs*i+planParts-1)/planParts), planDepth)
	}
	unit = timeUnit(last.after)
	for _, p := range curve {
		points = append(points, plotter.XY{X: float64(p.after) / float64(unit), Y: float64(p.jobs)})
	}
	return points, unit, err
}
