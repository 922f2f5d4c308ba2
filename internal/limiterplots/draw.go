package main

import (
	"fmt"
	"image/color"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/weirq/weir/internal/chart"
)

// Sizes and axes, the same for all plots.
const (
	width  = 20 * vg.Centimeter
	height = 10 * vg.Centimeter
	top    = 44
	// Below zero are the calls, and the names of the phases.
	askedTop, askedBottom, phaseNames, bottom = -1, -3.5, -5.2, -6.5
)

// draw writes the plot of an observation to a file.
func draw(file string, o observation) error {
	p := chart.New(title(o), "seconds", "passed since the start")
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, seconds(end), bottom, top
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks(0, 40, 5), ticks(0, 40, 10)
	p.Legend.Top, p.Legend.Left = false, false
	p.Legend.XOffs, p.Legend.YOffs = -3*vg.Millimeter, 16*vg.Millimeter
	for _, add := range []func(*plot.Plot, observation) error{addWorst, addAsked, addPassed, addBound} {
		if err := add(p, o); err != nil {
			return err
		}
	}
	return chart.Write(file, width, height, p)
}

// title is the rule, as "Token bucket 1/s burst 10".
func title(o observation) string {
	name := o.rule.String()
	return strings.ToUpper(name[:1]) + name[1:]
}

// caption is what the text in a plot says.
func caption(o observation) string { return fmt.Sprintf("%d in the worst 10 s", o.most) }

// addWorst marks the window in which most passed.
func addWorst(p *plot.Plot, o observation) error {
	from, to := seconds(o.worst), seconds(o.worst+window)
	area, err := plotter.NewPolygon(plotter.XYs{{X: from}, {X: to}, {X: to, Y: top}, {X: from, Y: top}})
	if err != nil {
		return err
	}
	area.Color, area.Width = chart.Peach, 0
	p.Add(area)
	return chart.AddText(p, caption(o), plotter.XY{X: (from + to) / 2, Y: top - 2}, text.XCenter, chart.Ink)
}

// addAsked draws a tick for each call, and names the phases of the traffic.
func addAsked(p *plot.Plot, o observation) error {
	p.Add(marks{o.asked})
	p.Legend.Add("asked", marks{})
	for _, f := range phases {
		at := plotter.XY{X: seconds(f.from+f.until) / 2, Y: phaseNames}
		if err := chart.AddText(p, f.name, at, text.XCenter, chart.Ink); err != nil {
			return err
		}
	}
	return nil
}

// marks are the ticks of calls.
type marks struct{ at []time.Duration }

var markStyle = vgdraw.LineStyle{Color: chart.Grey, Width: vg.Points(0.6)}

// Plot draws them.
func (m marks) Plot(c vgdraw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, at := range m.at {
		c.StrokeLine2(markStyle, x(seconds(at)), y(askedBottom), x(seconds(at)), y(askedTop))
	}
}

// Thumbnail draws some for the legend.
func (marks) Thumbnail(c *vgdraw.Canvas) {
	const shown = 6
	for i := range shown {
		x := c.Min.X + (c.Max.X-c.Min.X)*vg.Length(i)/(shown-1)
		c.StrokeLine2(markStyle, x, c.Min.Y, x, c.Max.Y)
	}
}

// addPassed draws the stairs of what passed, and for a queue of what was let in.
func addPassed(p *plot.Plot, o observation) error {
	name := "passed"
	if o.allowed[len(o.allowed)-1] != o.passed[len(o.passed)-1] {
		name = "left, and so passed"
		if err := addStairs(p, "let in, to wait for its turn", o.allowed, chart.Green, 1.2); err != nil {
			return err
		}
	}
	return addStairs(p, name, o.passed, chart.Blue, 2)
}

// addStairs counts instants.
func addStairs(p *plot.Plot, name string, at []time.Duration, colour color.Color, width float64) error {
	points := plotter.XYs{{}}
	for i, t := range at {
		points = append(points, plotter.XY{X: seconds(t), Y: float64(i + 1)})
	}
	points = append(points, plotter.XY{X: seconds(end), Y: float64(len(at))})
	line, err := chart.AddLine(p, name, points, colour, width)
	if err != nil {
		return err
	}
	line.StepStyle = plotter.PostStep
	return nil
}

// addBound draws what the limit would have from the start of the worst window on.
func addBound(p *plot.Plot, o observation) error {
	from := float64(o.before(o.worst)) + o.atOnce
	line, err := chart.AddLine(p, o.bound+" in the window", plotter.XYs{
		{X: seconds(o.worst), Y: from},
		{X: seconds(o.worst + window), Y: from + o.rate*window.Seconds()},
	}, chart.Orange, 1.5)
	if err != nil {
		return err
	}
	line.Dashes = chart.Dashes
	return nil
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// ticks are labelled ones at even distances.
func ticks(from, to, every int) plot.ConstantTicks {
	var list plot.ConstantTicks
	for n := from; n <= to; n += every {
		list = append(list, plot.Tick{Value: float64(n), Label: fmt.Sprint(n)})
	}
	return list
}
