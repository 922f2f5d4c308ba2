package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireChart asks for a PNG in which the first keys have curves in the colours
// of their own, and no others.
func requireChart(t *testing.T, name string, keys int) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	decoded, err := png.Decode(f)
	require.NoError(t, err)
	size := decoded.Bounds()
	require.Greater(t, size.Dx(), 1000)
	require.Greater(t, size.Dy(), 500)
	plain := image.NewRGBA(size)
	draw.Draw(plain, size, decoded, size.Min, draw.Src)
	pixels := make(map[color.RGBA]int)
	for i := 0; i < len(plain.Pix); i += 4 {
		pixels[color.RGBA{plain.Pix[i], plain.Pix[i+1], plain.Pix[i+2], plain.Pix[i+3]}]++
	}
	for i, c := range colours {
		if i < keys {
			require.Greater(t, pixels[c], 100, "colour %d", i)
		} else {
			require.Less(t, pixels[c], 20, "colour %d", i)
		}
	}
}

func TestCharts(t *testing.T) {
	for _, c := range []struct {
		name         string
		keys, shown  int
		events       int
		between, key time.Duration // from one to the next
	}{
		{"nothing", 2, 0, 0, 0, 0},
		{"one call", 1, 1, 1, 0, 0},
		{"many keys", 20, len(colours), 30, 100 * time.Millisecond, 0},
		{"keys that begin after the first seconds", 2, 2, 30, 100 * time.Millisecond, 2 * closeUp},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []destination
			var arrivals []arrival
			for k := range c.keys {
				l := newTimeline(c.events)
				l.key = fmt.Sprint("key ", k)
				for n := range c.events {
					l.call(n, time.Duration(k)*c.key+time.Duration(n)*c.between)
				}
				all = append(all, l.destination)
				arrivals = append(arrivals, l.arrivals...)
			}
			name := filepath.Join(t.TempDir(), "p.png")
			require.NoError(t, drawChart(name, all, arrivals))
			requireChart(t, name, c.shown)
		})
	}
}

func TestRoundTicks(t *testing.T) {
	for _, c := range []struct {
		high float64
		want []string
	}{
		{2, []string{"0", "0.5", "1", "1.5", "2"}},
		{25, []string{"0", "5", "10", "15", "20", "25"}},
		{1318, []string{"0", "200", "400", "600", "800", "1000", "1200"}},
		{1.05, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
	} {
		var labels []string
		for _, tick := range roundTicks(0, c.high) {
			labels = append(labels, tick.Label)
		}
		require.Equal(t, c.want, labels)
	}
}
