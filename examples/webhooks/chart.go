package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/weirq/weir/throttle"
)

// colours can be told apart with any kind of sight, on screens and in print (the
// palette of Okabe and Ito, 2008).
var colours = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
}

// closeUp is how much of the run the second panel shows: single calls are seen
// there, and the bursts that a key begins with.
const closeUp = 2 * time.Second

// A curve is one key in the chart.
type curve struct {
	destination
	colour   color.RGBA
	arrivals []arrival
}

// drawChart writes the arrivals of all keys over time, with the bound that none may
// cross, to a PNG file. The busiest keys are shown where there are many.
func drawChart(name string, destinations []destination, arrivals []arrival) error {
	curves := curvesOf(destinations, arrivals)
	span := closeUp
	if len(arrivals) > 0 {
		span = max(span, arrivals[len(arrivals)-1].at.Sub(arrivals[0].at))
	}
	whole, err := panel("Webhooks arrived, under their limits", curves, arrivals, span, false)
	if err != nil {
		return err
	}
	whole.Y.Label.Text = "calls arrived, retries included"
	first, err := panel(fmt.Sprintf("The first %.0f seconds, call by call", closeUp.Seconds()), curves, arrivals, closeUp, true)
	if err != nil {
		return err
	}
	image := vgimg.NewWith(vgimg.UseWH(30*vg.Centimeter, 13*vg.Centimeter), vgimg.UseDPI(144))
	panels := [][]*plot.Plot{{whole, first}}
	tiles := draw.Tiles{
		Rows: 1, Cols: 2, PadX: 8 * vg.Millimeter,
		PadTop: 4 * vg.Millimeter, PadBottom: 4 * vg.Millimeter, PadLeft: 4 * vg.Millimeter, PadRight: 6 * vg.Millimeter,
	}
	for i, canvas := range plot.Align(panels, tiles, draw.New(image))[0] {
		panels[0][i].Draw(canvas)
	}
	var file bytes.Buffer
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(&file); err != nil {
		return err
	}
	return os.WriteFile(name, file.Bytes(), 0o644)
}

func curvesOf(destinations []destination, arrivals []arrival) []curve {
	byKey := make(map[string][]arrival)
	for _, a := range arrivals {
		byKey[a.key] = append(byKey[a.key], a)
	}
	var curves []curve
	for _, d := range destinations {
		if len(byKey[d.key]) > 0 {
			curves = append(curves, curve{destination: d, arrivals: byKey[d.key]})
		}
	}
	slices.SortStableFunc(curves, func(a, b curve) int { return cmp.Compare(len(b.arrivals), len(a.arrivals)) })
	curves = curves[:min(len(colours), len(curves))]
	for i := range curves {
		curves[i].colour = colours[i]
	}
	return curves
}

// panel shows the span that begins with the first arrival of all, with a ring around
// each retry if there is room for them.
func panel(title string, curves []curve, arrivals []arrival, span time.Duration, rings bool) (*plot.Plot, error) {
	p := newPlot(title)
	rows := 0 // of the legend
	var bound *plotter.Line
	var retries *plotter.Scatter
	for _, c := range curves {
		if c.arrivals[0].at.Sub(arrivals[0].at) > span {
			continue
		}
		var err error
		if bound, err = c.addCalls(p, arrivals[0].at, span); err != nil {
			return nil, err
		}
		rows++
		again := c.points(arrivals[0].at, span, 2)
		if !rings || len(again) == 0 {
			continue
		}
		if retries, err = c.addRetries(p, again); err != nil {
			return nil, err
		}
	}
	if bound != nil {
		p.Legend.Add("bound: burst + rate × time", bound)
		rows++
	}
	if retries != nil {
		black := *retries
		black.Color = ink
		p.Legend.Add("retry after a 500", &black)
		rows++
	}
	p.X.Min, p.X.Max = 0, span.Seconds()
	// The legend takes about this part of the height, and no curve runs behind it.
	p.Y.Min, p.Y.Max = 0, max(1, p.Y.Max)/(1-0.045*float64(rows)-0.02)
	return p, nil
}

var (
	ink   = color.Gray{0x20}
	faint = color.Gray{0xe6}
)

func newPlot(title string) *plot.Plot {
	p := plot.New()
	sans := func(size font.Length) font.Font {
		return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	}
	p.Title.Text, p.Title.TextStyle.Font, p.Title.Padding = title, sans(13), 3*vg.Millimeter
	p.X.Label.Text = "seconds since the first arrival"
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Label.Padding = sans(11), 2*vg.Millimeter
		axis.Tick.Label.Font, axis.Tick.Marker, axis.Padding = sans(10), plot.TickerFunc(roundTicks), 0
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font, p.Legend.Padding = sans(10), vg.Millimeter
	p.Legend.ThumbnailWidth = 8 * vg.Millimeter
	p.Legend.XOffs, p.Legend.YOffs = 3*vg.Millimeter, -vg.Millimeter
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	p.Add(grid)
	return p
}

// addCalls draws the calls as steps, and returns the line of their bound.
func (c curve) addCalls(p *plot.Plot, start time.Time, span time.Duration) (*plotter.Line, error) {
	points := append(plotter.XYs{{X: c.arrivals[0].at.Sub(start).Seconds()}}, c.points(start, span, 1)...)
	calls, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	calls.StepStyle = plotter.PostStep
	calls.Color, calls.Width = c.colour, vg.Points(2)
	last := c.arrivals[len(c.arrivals)-1].at.Sub(start)
	bound, err := plotter.NewLine(boundLine(c.limit, points[0].X, min(last, span).Seconds()))
	if err != nil {
		return nil, err
	}
	bound.Color, bound.Width, bound.Dashes = ink, vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(calls, bound)
	p.Legend.Add(fmt.Sprintf("%s, %s", label(c.key), c.limit), calls)
	return bound, nil
}

func (c curve) addRetries(p *plot.Plot, points plotter.XYs) (*plotter.Scatter, error) {
	rings, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	rings.Shape, rings.Color, rings.Radius = draw.RingGlyph{}, c.colour, vg.Points(3.5)
	p.Add(rings)
	return rings, nil
}

// points are the calls within the span that are an event's attempt number from or
// later, at how many there were by then.
func (c curve) points(start time.Time, span time.Duration, from int) plotter.XYs {
	var points plotter.XYs
	for i, a := range c.arrivals {
		at := a.at.Sub(start)
		if at <= span && a.attempt >= from {
			points = append(points, plotter.XY{X: at.Seconds(), Y: float64(i + 1)})
		}
	}
	return points
}

// boundLine is the most that may have arrived at each instant up to to, when the
// first call arrived at from.
func boundLine(limit throttle.Limit, from, to float64) plotter.XYs {
	burst := float64(limit.Burst)
	perSecond := float64(limit.Rate) / limit.Period.Seconds()
	return plotter.XYs{{X: from, Y: burst}, {X: to, Y: burst + perSecond*(to-from)}}
}

// roundTicks are four to ten ticks at multiples of 1, 2 or 5 times a power of ten.
func roundTicks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	for _, times := range []float64{5, 2} {
		if (high-low)/(step*times) >= 4 {
			step *= times
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		ticks = append(ticks, plot.Tick{Value: n * step, Label: strconv.FormatFloat(n*step, 'g', 6, 64)})
	}
	return ticks
}
