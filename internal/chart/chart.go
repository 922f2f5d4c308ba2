// Package chart gives the project's plots one look, and writes them to files.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours that can be told apart with any kind of sight, on screens and in print (the
// palette of Okabe and Ito, 2008).
var (
	Blue   = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	Green  = color.RGBA{0x00, 0x9e, 0x73, 0xff}
	Orange = color.RGBA{0xd5, 0x5e, 0x00, 0xff}
	Purple = color.RGBA{0xcc, 0x79, 0xa7, 0xff}
	Peach  = color.RGBA{0xf7, 0xd8, 0xc2, 0xff} // a ground that Orange can be seen on
	Ink    = color.Gray{0x20}
	Grey   = color.Gray{0x8c} // for what stands behind the rest
	pale   = color.Gray{0xe6}
)

// Dashes are those of lines that stand for bounds.
var Dashes = []vg.Length{vg.Points(4), vg.Points(3)}

const dpi = 144

// Format is svg or png by a file's name, or empty.
func Format(file string) string {
	switch format := strings.ToLower(filepath.Ext(file)); format {
	case ".svg", ".png":
		return format[1:]
	}
	return ""
}

// New is a plot without curves: a title, names of the axes, and a grid.
func New(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.TextStyle.Font, p.Title.Padding = title, sans(13), 3*vg.Millimeter
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Label.Padding = sans(11), 2*vg.Millimeter
		axis.Tick.Label.Font, axis.Padding = sans(10), 0
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.TextStyle.Font, p.Legend.Padding, p.Legend.ThumbnailWidth = sans(10), vg.Millimeter, 8*vg.Millimeter
	p.Legend.XOffs, p.Legend.YOffs = 3*vg.Millimeter, -vg.Millimeter
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = pale, pale
	p.Add(grid)
	return p
}

func sans(size font.Length) font.Font {
	return font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
}

// AddLine draws points. There may be none. A line without a name is not in the legend.
func AddLine(p *plot.Plot, name string, points plotter.XYs, colour color.Color, width float64) (*plotter.Line, error) {
	if len(points) == 0 {
		points = plotter.XYs{{}}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.Color, line.Width = colour, vg.Points(width)
	p.Add(line)
	if name != "" {
		p.Legend.Add(name, line)
	}
	return line, nil
}

// AddText writes a text whose left end, or for [text.XCenter] whose middle, is at a point.
func AddText(p *plot.Plot, words string, at plotter.XY, align text.XAlignment, colour color.Color) error {
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: []string{words}})
	if err != nil {
		return err
	}
	style := &labels.TextStyle[0]
	style.Font, style.Color, style.XAlign, style.YAlign = sans(10), colour, align, text.YCenter
	p.Add(labels)
	return nil
}

// Write draws plots of one width, one below the other, to an SVG or PNG file.
func Write(file string, width, height vg.Length, plots ...*plot.Plot) error {
	var canvas vg.CanvasSizer
	var out io.WriterTo
	switch Format(file) {
	case "svg":
		svg := vgsvg.New(width, height)
		canvas, out = svg, svg
	case "png":
		image := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		canvas, out = image, vgimg.PngCanvas{Canvas: image}
	default:
		return fmt.Errorf("plot file %q: its name must end in .svg or .png", file)
	}
	panels := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		panels[i] = []*plot.Plot{p}
	}
	const margin = 4 * vg.Millimeter
	tiles := draw.Tiles{
		Rows: len(plots), Cols: 1, PadY: 6 * vg.Millimeter,
		PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: 6 * vg.Millimeter,
	}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		plots[i].Draw(row[0])
	}
	var drawn bytes.Buffer
	if _, err := out.WriteTo(&drawn); err != nil {
		return err
	}
	return os.WriteFile(file, drawn.Bytes(), 0o644)
}
