package main

import (
	"fmt"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
)

// planParts is how many parts of a line are told apart, where it has as many jobs; where
// nothing leaves for a while, planDepth says how often a part is halved to find out
// between which jobs.
const (
	planParts = 500
	planDepth = 8
)

// drawPlan writes a plot of a plan to an SVG or PNG file.
func drawPlan(file string, r throttle.PlanRequest) error {
	points, unit, err := planCurve(r)
	if err != nil {
		return err
	}
	if end := (plotter.XY{X: 1, Y: float64(r.Jobs)}); points[len(points)-1].X < end.X { // an axis has some length
		points = append(points, end)
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

// planCurve is how many jobs have departed by when: level while nothing leaves, a step at
// each departure that is known, and a slope where many leave in too short a time to tell
// them apart. The beginning of a line departs as the whole of it does, so each point is a
// shorter plan.
func planCurve(r throttle.PlanRequest) (points plotter.XYs, unit time.Duration, err error) {
	at := func(jobs int64) (p planPoint) {
		if err != nil {
			return p
		}
		part := r
		part.Jobs = jobs
		var s throttle.Schedule
		s, err = throttle.Plan(part)
		return planPoint{jobs, s.Last.Sub(r.Start)}
	}
	last := at(r.Jobs)
	curve := []planPoint{{}}
	var fill func(to planPoint, depth int)
	fill = func(to planPoint, depth int) {
		from := curve[len(curve)-1]
		idle := to.after-from.after > last.after/planParts
		half := from.jobs + (to.jobs-from.jobs)/2
		if depth > 0 && half > from.jobs && idle {
			fill(at(half), depth-1)
			fill(to, depth-1)
			return
		}
		if isForever(r.Start.Add(from.after), r.Start) { // all that is later is told as the same
			return
		}
		if idle || to.jobs == from.jobs+1 {
			curve = append(curve, planPoint{from.jobs, to.after})
		}
		curve = append(curve, to)
	}
	parts := min(planParts, r.Jobs)
	for i := int64(1); i <= parts; i++ {
		fill(at((r.Jobs*i+parts-1)/parts), planDepth)
	}
	unit = timeUnit(last.after)
	for _, p := range curve {
		points = append(points, plotter.XY{X: float64(p.after) / float64(unit), Y: float64(p.jobs)})
	}
	return points, unit, err
}
