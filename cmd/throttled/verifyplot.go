package main

import (
	"image/color"
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
	// plotSpan is the least time that is shown: the whole history may be one departure.
	plotSpan = time.Second
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
	early, forced                   plotter.XYs // departures that left too early, or past the limit, where departed is
	forcedLevel                     plotter.XYs // and where the level is after those that were forced
}

// curvesOf makes the curves of a history, with no more points than can be seen.
func curvesOf(h throttle.History) curves {
	var c curves
	for s := range h.Steps() {
		c.span = s.Since
	}
	c.span = max(c.span, plotSpan)
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
		if s.Early && (fresh || c.apart(c.early, x)) {
			c.early = append(c.early, plotter.XY{X: x, Y: s.Cost})
		}
		if s.Departure != nil && s.Departure.Forced {
			alone := c.apart(c.forced, x)
			mark(&c.forced, plotter.XY{X: x, Y: s.Cost}, alone)
			mark(&c.forcedLevel, plotter.XY{X: x, Y: s.After}, alone)
		}
		last = s
	}
	if len(c.departed) > 0 {
		c.runOn(last)
	}
	return c
}

// apart tells whether the last of marks is a column before x.
func (c *curves) apart(marks plotter.XYs, x float64) bool {
	return len(marks) == 0 || marks[len(marks)-1].X < x-c.x(c.span)/plotColumns
}

// runOn draws what follows the last step, up to the end of the axis: nothing leaves.
func (c *curves) runOn(last throttle.Step) {
	end := c.x(c.span)
	c.burst = append(c.burst, plotter.XY{X: end, Y: c.burst[len(c.burst)-1].Y})
	if last.Since == c.span {
		return
	}
	leaked := float64(c.span-last.Since) * float64(last.Limit.Rate) / float64(last.Limit.Period)
	c.departed = append(c.departed, plotter.XY{X: end, Y: last.Cost})
	c.allowed = append(c.allowed, plotter.XY{X: end, Y: last.Allowed + leaked})
	c.leak(last, c.span)
	c.level = append(c.level, plotter.XY{X: end, Y: max(0, last.After-leaked)})
}

func (c *curves) x(since time.Duration) float64 { return float64(since) / float64(c.unit) }

// mark adds a mark, or puts it in the place of the last one if it is not apart from that.
func mark(marks *plotter.XYs, p plotter.XY, apart bool) {
	if !apart {
		*marks = (*marks)[:len(*marks)-1]
	}
	*marks = append(*marks, p)
}

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
	if len(c.level) > 0 && s.Before == 0 {
		c.leak(last, s.Since)
	}
	c.level = append(c.level, plotter.XY{X: x, Y: s.Before}, plotter.XY{X: x, Y: s.After})
}

// leak draws when the bucket ran empty after a step, if it did by then: it stays so.
func (c *curves) leak(last throttle.Step, by time.Duration) {
	leak := time.Duration(last.After * float64(last.Limit.Period) / float64(last.Limit.Rate))
	if empty := last.Since + leak; empty < by {
		c.level = append(c.level, plotter.XY{X: c.x(empty)})
	}
}

func (c *curves) departedPanel(v throttle.Verification) (*plot.Plot, error) {
	title := "Departed under " + plotText(v.Key) + ", and the most that may have"
	p, err := c.panel(v, title, []plotter.XYs{c.early, c.forced}, c.departed, c.allowed)
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
	if err := addMarks(p, "left too early", c.early, draw.CrossGlyph{}, chart.Orange); err != nil {
		return nil, err
	}
	return p, addMarks(p, forcedName, c.forced, draw.PyramidGlyph{}, chart.Purple)
}

// forcedName is in the legend for departures that an operator forced.
const forcedName = "let go past the limit"

// addMarks marks points, if there are any.
func addMarks(p *plot.Plot, name string, points plotter.XYs, shape draw.GlyphDrawer, colour color.Color) error {
	if len(points) == 0 {
		return nil
	}
	marks, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	marks.Shape, marks.Color, marks.Radius = shape, colour, vg.Points(4)
	p.Add(marks)
	p.Legend.Add(name, marks)
	return nil
}

func (c *curves) levelPanel(v throttle.Verification) (*plot.Plot, error) {
	p, err := c.panel(v, "In the bucket", []plotter.XYs{c.forcedLevel}, c.level, c.burst)
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
	return p, addMarks(p, forcedName, c.forcedLevel, draw.PyramidGlyph{}, chart.Purple)
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

// panel is a plot without its curves and marks, with room for them.
func (c *curves) panel(v throttle.Verification, title string, marks []plotter.XYs, curves ...plotter.XYs) (*plot.Plot, error) {
	p := chart.New(title, unitNames[c.unit]+" since "+stamp(v.From), "cost units")
	top := 1.0
	for _, points := range curves {
		for _, point := range points {
			top = max(top, point.Y)
		}
	}
	p.X.Max = c.x(c.span)
	rows := len(curves) // of the legend
	for _, points := range marks {
		rows += min(1, len(points))
	}
	rows += min(1, len(v.Violations))
	// A row takes about this part of the height, and no curve runs behind the legend.
	p.Y.Max = top / (1 - 0.07*float64(rows) - 0.05)
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
