package main

import (
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
)

// Sizes of a plot.
const (
	plotWidth  = 26 * vg.Centimeter
	plotHeight = 18 * vg.Centimeter
	// plotColumns is how many parts of the time are told apart: about the pixels.
	plotColumns = 1500
	// plotMarks bounds the windows that are marked.
	plotMarks = 200
)

// drawVerification writes a plot of a history to an SVG or PNG file.
func drawVerification(file string, h throttle.History, v throttle.Verification) error {
	c := curvesOf(h)
	departed, err := c.departedPanel(v)
	if err != nil {
		return err
	}
	level, err := c.levelPanel(v)
	if err != nil {
		return err
	}
	return chart.Write(file, plotWidth, plotHeight, departed, level)
}

// curves are what a plot shows, over the time since the first departure.
type curves struct {
	unit                            time.Duration // of the time axis
	span                            time.Duration
	departed, allowed, level, burst plotter.XYs
	early                           plotter.XYs // departures that left too early, where departed is
}

// curvesOf makes the curves of a history, with no more points than can be seen.
func curvesOf(h throttle.History) curves {
	var c curves
	for s := range h.Steps() {
		c.span = s.Since
	}
	c.span = max(c.span, time.Millisecond)
	c.unit = timeUnit(c.span)
	column := -1
	var last throttle.Step
	for s := range h.Steps() {
		x := c.x(s.Since)
		if len(c.departed) == 0 {
			c.departed = append(c.departed, plotter.XY{X: x})
			c.burst = append(c.burst, plotter.XY{X: x, Y: float64(s.Limit.Burst)})
		}
		now := int(float64(s.Since) / float64(c.span) * plotColumns)
		fresh := now != column
		column = now
		thin(&c.departed, plotter.XY{X: x, Y: s.Cost}, fresh)
		thin(&c.allowed, plotter.XY{X: x, Y: s.Allowed}, fresh)
		c.addLevel(last, s, fresh)
		if before := c.burst[len(c.burst)-1].Y; before != float64(s.Limit.Burst) {
			c.burst = append(c.burst, plotter.XY{X: x, Y: before}, plotter.XY{X: x, Y: float64(s.Limit.Burst)})
		}
		if s.Early && (fresh || len(c.early) == 0 || c.early[len(c.early)-1].X < x-c.x(c.span)/plotColumns) {
			c.early = append(c.early, plotter.XY{X: x, Y: s.Cost})
		}
		last = s
	}
	if n := len(c.burst); n > 0 {
		c.burst = append(c.burst, plotter.XY{X: c.x(c.span), Y: c.burst[n-1].Y})
	}
	return c
}

func (c *curves) x(since time.Duration) float64 { return float64(since) / float64(c.unit) }

// thin keeps the last point of a column, and the first one of all.
func thin(points *plotter.XYs, p plotter.XY, fresh bool) {
	if n := len(*points); !fresh && n > 1 {
		(*points)[n-1] = p
		return
	}
	*points = append(*points, p)
}

// addLevel draws how the bucket leaked since the last step, and the step. In a column
// that has one already only the highest level counts.
func (c *curves) addLevel(last, s throttle.Step, fresh bool) {
	x := c.x(s.Since)
	if n := len(c.level); !fresh && n > 1 {
		if s.After > c.level[n-1].Y {
			c.level[n-1].Y = s.After
		}
		return
	}
	if len(c.level) > 0 {
		// A bucket that runs empty stays so.
		leak := time.Duration(last.After * float64(last.Limit.Period) / float64(last.Limit.Rate))
		if empty := last.Since + leak; s.Before == 0 && empty < s.Since {
			c.level = append(c.level, plotter.XY{X: c.x(empty)})
		}
	}
	c.level = append(c.level, plotter.XY{X: x, Y: s.Before}, plotter.XY{X: x, Y: s.After})
}

func (c *curves) departedPanel(v throttle.Verification) (*plot.Plot, error) {
	p, err := c.panel(v, "Departed under "+plotText(v.Key)+", and the most that may have", c.departed, c.allowed)
	if err != nil {
		return nil, err
	}
	departed, err := chart.AddLine(p, "departed, retries included", c.departed, chart.Blue, 2)
	if err != nil {
		return nil, err
	}
	departed.StepStyle = plotter.PostStep
	allowed, err := chart.AddLine(p, "allowed: burst + rate × time", c.allowed, chart.Ink, 1)
	if err != nil {
		return nil, err
	}
	allowed.Dashes = chart.Dashes
	if len(c.early) == 0 {
		return p, nil
	}
	marks, err := plotter.NewScatter(c.early)
	if err != nil {
		return nil, err
	}
	marks.Shape, marks.Color, marks.Radius = draw.CrossGlyph{}, chart.Orange, vg.Points(4)
	p.Add(marks)
	p.Legend.Add("left too early", marks)
	return p, nil
}

func (c *curves) levelPanel(v throttle.Verification) (*plot.Plot, error) {
	p, err := c.panel(v, "In the bucket", c.level, c.burst)
	if err != nil {
		return nil, err
	}
	if _, err := chart.AddLine(p, "level", c.level, chart.Green, 1.2); err != nil {
		return nil, err
	}
	burst, err := chart.AddLine(p, "burst", c.burst, chart.Ink, 1)
	if err != nil {
		return nil, err
	}
	burst.Dashes = chart.Dashes
	return p, nil
}

// addWindows marks the windows that broke the policy, from the bottom to the top.
func (c *curves) addWindows(p *plot.Plot, v throttle.Verification) error {
	for i, b := range v.Violations[:min(plotMarks, len(v.Violations))] {
		from, to, top := c.inside(b.From.Sub(v.From)), c.inside(b.To.Sub(v.From)), p.Y.Max
		area, err := plotter.NewPolygon(plotter.XYs{{X: from}, {X: to}, {X: to, Y: top}, {X: from, Y: top}})
		if err != nil {
			return err
		}
		area.Color, area.Width = chart.Peach, 0
		end, err := plotter.NewLine(plotter.XYs{{X: to}, {X: to, Y: top}})
		if err != nil {
			return err
		}
		end.Color, end.Width = chart.Orange, vg.Points(1)
		p.Add(area, end)
		if i == 0 {
			p.Legend.Add("window that broke the policy", area, end)
		}
	}
	return nil
}

// inside is a time on the axis, or the end of the axis that it is beyond.
func (c *curves) inside(since time.Duration) float64 { return c.x(min(max(0, since), c.span)) }

// panel is a plot without its curves, with room for them.
func (c *curves) panel(v throttle.Verification, title string, curves ...plotter.XYs) (*plot.Plot, error) {
	p := chart.New(title, unitNames[c.unit]+" since "+stamp(v.From), "cost units")
	top := 1.0
	for _, points := range curves {
		for _, point := range points {
			top = max(top, point.Y)
		}
	}
	p.X.Max = c.x(c.span)
	p.Y.Max = top * 1.3 // no curve runs behind the legend
	return p, c.addWindows(p, v)
}

// unitNames are the units of the time axis.
var unitNames = map[time.Duration]string{
	time.Second: "seconds", time.Minute: "minutes", time.Hour: "hours", 24 * time.Hour: "days",
}

// timeUnit is the longest unit of which a span has at least five.
func timeUnit(span time.Duration) time.Duration {
	best := time.Second
	for unit := range unitNames {
		if span >= 5*unit && unit > best {
			best = unit
		}
	}
	return best
}

// plotText is a name as a title shows it.
func plotText(name string) string {
	const most = 40
	name = shown(name)
	if r := []rune(name); len(r) > most {
		name = string(r[:most-1]) + "…"
	}
	return name
}
