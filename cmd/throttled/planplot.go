package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

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
	p := plot.New()
	sans := func(size font.Length) font.Font {
		return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	}
	p.Title.Text, p.Title.TextStyle.Font, p.Title.Padding = planTitle(r), sans(13), 3*vg.Millimeter
	p.X.Label.Text, p.Y.Label.Text = unitNames[unit]+" since "+stamp(r.Start), "jobs"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Label.Padding = sans(11), 2*vg.Millimeter
		axis.Tick.Label.Font, axis.Padding = sans(10), 0
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = gridColour, gridColour
	p.Add(grid)
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = departedColour, vg.Points(2)
	p.Add(line)
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, float64(r.Jobs)*1.05
	return writePlot(file, p)
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

// writePlot draws a plot of one panel to a file.
func writePlot(file string, p *plot.Plot) error {
	var canvas vg.CanvasSizer
	var out io.WriterTo
	if plotFormat(file) == "svg" {
		svg := vgsvg.New(plotWidth, plotHeight)
		canvas, out = svg, svg
	} else {
		image := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))
		canvas, out = image, vgimg.PngCanvas{Canvas: image}
	}
	margin := 4 * vg.Millimeter
	p.Draw(draw.Crop(draw.New(canvas), margin, -2*margin, margin, -margin))
	var drawn bytes.Buffer
	if _, err := out.WriteTo(&drawn); err != nil {
		return err
	}
	return os.WriteFile(file, drawn.Bytes(), 0o644)
}
