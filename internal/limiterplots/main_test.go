package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/limiter"
)

const (
	plots = "../../docs/limiters"
	page  = "../../docs/limiters.md"
)

func TestThePlotsAreCurrent(t *testing.T) {
	require.NoError(t, checkAll(plots, "svg"))
}

var image = regexp.MustCompile(`!\[(.*)\]\((.*)\)`)

// The page shows all plots, in their order, and says what they say.
func TestThePageShowsThePlots(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var want, have []string
	for _, s := range subjects {
		o, err := observe(s)
		require.NoError(t, err)
		want = append(want, fmt.Sprintf("%s: %s, limiters/%s.svg", title(o), caption(o), s.file))
	}
	for _, m := range image.FindAllStringSubmatch(string(text), -1) {
		have = append(have, m[1]+", "+m[2])
	}
	require.Equal(t, want, have)
}

// Nothing is in the directory that nobody draws.
func TestTheDirectoryHasThePlotsAlone(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(plots, "*"))
	require.NoError(t, err)
	require.Len(t, files, len(subjects))
}

// What passes is what each algorithm promises: for all of the traffic, in any window.
func TestMostInAnyWindow(t *testing.T) {
	most := map[limiter.Algorithm]int{
		limiter.FixedWindowAlgorithm: 2 * units, limiter.SlidingLogAlgorithm: units, limiter.SlidingCounterAlgorithm: 2*units - 1,
		limiter.TokenBucketAlgorithm: 2*units - 1, limiter.LeakyBucketAlgorithm: 2*units - 1, limiter.LeakyQueueAlgorithm: units,
	}
	for _, s := range subjects {
		o, err := observe(s)
		require.NoError(t, err)
		require.LessOrEqual(t, o.most, most[s.rule.Algorithm()], s.file)
		require.GreaterOrEqual(t, o.most, units, s.file)
		require.Less(t, o.passed[len(o.passed)-1], end, s.file)
	}
}

func TestAPlotThatIsNotCurrentIsTold(t *testing.T) {
	dir := t.TempDir()
	require.ErrorIs(t, checkAll(dir, "svg"), os.ErrNotExist)
	require.NoError(t, writeAll(dir, "svg"))
	require.NoError(t, checkAll(dir, "svg"))

	file := filepath.Join(dir, "leaky-queue.svg")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, ' '), 0o600))
	require.ErrorContains(t, checkAll(dir, "svg"), "leaky-queue.svg is not current: draw it with go run ./internal/limiterplots")
}

func TestSamePlots(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"M11.339,-2L5,6", "M11.339,-2L5,6", true},
		{"M11.339,-2", "M11.34,-2", true}, // rounded otherwise
		{"M11.339,-2", "M11.36,-2", false},
		{"M11,2", "M11,2L", false},
		{"M11,2", "M11,-2", false},
		{"#FF0000", "#00FF00", false},
		{"#0072B2", "#0172B2", false},
		{"1 2", "1 2 3", false},
		{"", "", true},
	} {
		require.Equal(t, tt.same, same(tt.a, tt.b), "%q and %q", tt.a, tt.b)
	}
}
