package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// start is when the histories of these tests begin.
var start = time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)

// keep writes a history as the scripts do: the instants, in seconds, are added to start.
func keep(t *testing.T, r *throttletest.Redis, key string, entries ...string) {
	t.Helper()
	_, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{Shards: 1})
	require.NoError(t, err)
	for _, e := range entries {
		add := redis.XAddArgs{Stream: "weir:{00}:h:" + key, Values: []string{"e", entryText(t, e)}}
		require.NoError(t, r.Client().XAdd(t.Context(), &add).Err())
	}
}

func entryText(t *testing.T, entry string) string {
	t.Helper()
	fields := strings.SplitN(entry, " ", 3)
	after, err := time.ParseDuration(fields[1] + "s")
	require.NoError(t, err)
	return fmt.Sprintf("%s %d %s", fields[0], start.Add(after).UnixMicro(), fields[2])
}

// kept is a history that keeps to its policy.
var kept = []string{
	`p 0 1 1000000 2 100 {"q":[[6,3600000000,"s",""]]}`,
	"d 0 1 1 0 1 - a k", "d 0 1 1 0 1 - b k", "d 1 1 1 0 1 - c k", "d 2 1 1 0 1 f d" + escape + " k", "s 2 1 1 a k", "d 4.5 1 1 0 2 - e k",
}

func TestVerifyClean(t *testing.T) {
	r := throttletest.StartRedis(t)
	keep(t, r, "k", kept...)
	require.Equal(t, text(
		`key       k`,
		`from      2026-12-01T06:00:00.000Z`,
		`to        2026-12-01T06:00:04.500Z (4.5s)`,
		`departed  5 jobs of 6 units, 1 forced, 1 dearer than charged`,
		`allowed   6.5 units, burst + rate × time: 92.3% of it was used`,
		`busy      for 3.5s, at 85.7% of the rate`,
		`quota     6/h sliding: at most 6 (100%), from 2026-12-01T06:00:00.000Z to 2026-12-01T06:00:04.500Z`,
		`verdict   clean: no window broke the policy in force`,
		``,
		`Jobs that were let go past the limit:`,
		`AT                           ID          KEY  COST`,
		`2026-12-01T06:00:02.000000Z  "d\x1b[2J"  k    1`,
	), ask(t, r, "verify", "k"))

	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(ask(t, r, "verify", "k", "--json")), &got))
	require.InDelta(t, 6/6.5, got["used"], 1e-9)
	require.InDelta(t, 3/3.5, got["pace"], 1e-9)
	delete(got, "used")
	delete(got, "pace")
	require.Equal(t, map[string]any{
		"key": "k", "clean": true, "from": "2026-12-01T06:00:00.000000Z", "to": "2026-12-01T06:00:04.500000Z",
		"departures": 5.0, "cost": 6.0, "settlements": 1.0, "allowed": 6.5, "busy_seconds": 3.5,
		"damaged": 0.0, "unjudged": 0.0, "unchecked": []any{}, "violations": []any{},
		"quotas": []any{map[string]any{
			"quota": "6/h sliding", "most": 6.0, "used": 1.0, "from": "2026-12-01T06:00:00.000000Z", "to": "2026-12-01T06:00:04.500000Z",
		}},
		"forced": []any{map[string]any{"at": "2026-12-01T06:00:02.000000Z", "id": "d" + escape, "key": "k", "cost": 1.0}},
	}, got)
}

func TestVerifyBroken(t *testing.T) {
	r := throttletest.StartRedis(t)
	keep(t, r, "k", "p -2 ?", "d -1 1 1 0 1 - unknown k")
	keep(t, r, "k", kept...)
	keep(t, r, "k", "d 0.25 1 1 0 1 - bad k", "x 0 y", `p 10 9 1000000 9 100 {"q":[[1,86400000000,"f","Mars/Olympus"]]}`, "d 10 1 1 0 1 - f k")
	code, out, stderr := try(t, r, "verify", "k")
	require.Equal(t, exitFailed, code)
	require.Empty(t, stderr)
	require.Equal(t, text(
		`key          k`,
		`from         2026-12-01T06:00:00.000Z`,
		`to           2026-12-01T06:00:10.000Z (10s)`,
		`departed     7 jobs of 8 units, 1 forced, 1 dearer than charged`,
		`allowed      63 units, burst + rate × time: 12.7% of it was used`,
		`busy         for 3.5s, at 85.7% of the rate`,
		`quota        6/h sliding: at most 7 (116.7%), from 2026-12-01T06:00:00.000Z to 2026-12-01T06:00:04.500Z`,
		`not judged   1 departure whose policy is not known`,
		`damaged      2 entries that cannot be read`,
		`not checked  quota 1/d fixed Mars/Olympus: the zone is not known here`,
		`verdict      2 windows broke the policy in force`,
		``,
		`Windows that broke the policy in force:`,
		`WHAT               FROM                         TO                           COST  ALLOWED  TOO EARLY  JOBS  POLICY`,
		`rate               2026-12-01T06:00:00.000000Z  2026-12-01T06:00:01.000000Z  4     3        1          bad   rate 1/s, burst 2, max_in_flight 100, quotas 6/h sliding`,
		`quota 6/h sliding  2026-12-01T06:00:00.000000Z  2026-12-01T06:00:04.500000Z  7     6        1          e     rate 1/s, burst 2, max_in_flight 100, quotas 6/h sliding`,
		``,
		`Jobs that were let go past the limit:`,
		`AT                           ID          KEY  COST`,
		`2026-12-01T06:00:02.000000Z  "d\x1b[2J"  k    1`,
	), out)

	code, out, stderr = try(t, r, "verify", "k", "--json")
	require.Equal(t, exitFailed, code)
	require.Empty(t, stderr)
	var got verificationView
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.False(t, got.Clean)
	require.Equal(t, []int{2, 1, 1}, []int{got.Damaged, got.Unjudged, len(got.Unchecked)})
	require.Len(t, got.Violations, 2)
	require.Equal(t, []string{"bad"}, got.Violations[0].Jobs)
	require.Equal(t, "1/s", got.Violations[0].Policy.Rate)
}

func TestVerifyOfWhatIsNotKept(t *testing.T) {
	r := throttletest.StartRedis(t)
	keep(t, r, "only", "p -2 ?", "d 0 1 1 0 1 - unknown k")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"k"}, `there is no history of key "k": nothing departed within a day, or its policy keeps none; ` +
			"throttled policy set KEY --history N has it keep the last N departures\n"},
		{[]string{"only"}, `nobody knows the policy of the departures that are kept`},
		{[]string{"k", "--plot", "x.pdf"}, `--plot "x.pdf" is not allowed: want the name of a file that ends in .svg or .png`},
		{[]string{"k", "--plot", ""}, `--plot "" is not allowed`},
		{[]string{""}, `KEY "" is not allowed: want 1 to 512 bytes`},
	} {
		code, out, stderr := try(t, r, append([]string{"verify"}, c.args...)...)
		require.Equal(t, exitInvalid, code, "%q", c.args)
		require.Empty(t, out)
		require.Contains(t, stderr, c.want)
	}
	keep(t, r, "k", kept...)
	code, out, stderr := try(t, r, "verify", "k", "--plot", filepath.Join(t.TempDir(), "none", "k.svg"))
	require.Equal(t, exitInvalid, code)
	require.Empty(t, out)
	require.Contains(t, stderr, "--plot: open ")
}

func TestForcedJobsBeyondTheTable(t *testing.T) {
	r := throttletest.StartRedis(t)
	entries := kept[:1:1]
	for i := range mostForced + 3 {
		entries = append(entries, fmt.Sprintf("d %d 1 1 0 1 f j%02d k", i, i))
	}
	keep(t, r, "k", entries...)
	out := ask(t, r, "verify", "k")
	require.Contains(t, out, fmt.Sprintf("  j%02d  k    1\nand 3 more, see --json\n", mostForced-1))
	require.NotContains(t, out, fmt.Sprintf("j%02d", mostForced))
}

func TestVerifyPlots(t *testing.T) {
	r := throttletest.StartRedis(t)
	keep(t, r, "good", kept...)
	keep(t, r, "bad"+escape, append(kept[:len(kept):len(kept)], "d 4.5 3 1 0 1 - bad k", "d 4.6 9 1 0 1 - worse k", "d 20000 1 1 0 1 - last k")...)
	keep(t, r, "single", kept[:2]...)
	keep(t, r, "empty", kept[0])
	for key, breaks := range map[string]bool{"good": false, "bad" + escape: true, "single": false, "empty": false} {
		for _, ext := range []string{".png", ".SVG"} {
			name := filepath.Join(t.TempDir(), "plot"+ext)
			code, out, stderr := try(t, r, "verify", key, "--plot", name)
			require.Empty(t, stderr)
			require.Contains(t, out, "verdict")
			require.Equal(t, map[bool]int{false: exitClean, true: exitFailed}[breaks], code)
			if ext == ".png" {
				requirePixels(t, name, chart.Orange, breaks)
			} else {
				requireDrawing(t, name, "window that broke the policy", breaks)
				requireDrawing(t, name, forcedName, key != "single" && key != "empty")
			}
		}
	}
}

// requirePixels asks for a PNG that has a colour, or has not.
func requirePixels(t *testing.T, name string, want color.RGBA, has bool) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	decoded, err := png.Decode(f)
	require.NoError(t, err)
	size := decoded.Bounds()
	require.Greater(t, size.Dx(), 1000)
	plain := image.NewRGBA(size)
	draw.Draw(plain, size, decoded, size.Min, draw.Src)
	found := 0
	for i := 0; i < len(plain.Pix); i += 4 {
		if (color.RGBA{plain.Pix[i], plain.Pix[i+1], plain.Pix[i+2], plain.Pix[i+3]}) == want {
			found++
		}
	}
	require.Equal(t, has, found > 50, "%d pixels", found)
}

// requireDrawing asks for an SVG that has a text, or has not.
func requireDrawing(t *testing.T, name, want string, has bool) {
	t.Helper()
	drawn, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NotContains(t, string(drawn), "\x1b")
	require.Equal(t, has, bytes.Contains(drawn, []byte(want)))
	decoder := xml.NewDecoder(bytes.NewReader(drawn))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// However long a history is, a plot has no more points than can be seen, and no peak of
// the level is lost.
func TestPlotsOfLongHistories(t *testing.T) {
	h := throttle.History{Key: "k", Policies: []throttle.PolicyChange{
		{Policy: throttle.Policy{Limit: throttle.Limit{Rate: 10, Period: time.Second, Burst: 20}}},
		{At: start.Add(time.Hour), Policy: throttle.Policy{Limit: throttle.Limit{Rate: 10, Period: time.Second, Burst: 40}}},
	}}
	add := func(after time.Duration, cost int64) {
		h.Departures = append(h.Departures, throttle.Departure{At: start.Add(after), ID: "j", Cost: cost})
	}
	for i := range 100_000 {
		add(time.Duration(i)*100*time.Millisecond, 1)
		if i == 500 {
			add(time.Duration(i)*100*time.Millisecond, 18)
		}
		if i == 70_000 {
			add(time.Duration(i)*100*time.Millisecond, 50)
		}
	}
	v := h.Verify()
	require.Len(t, v.Violations, 1)
	c := curvesOf(h)
	require.Equal(t, time.Minute, c.unit)
	require.LessOrEqual(t, len(c.departed), plotColumns+3)
	require.LessOrEqual(t, len(c.level), 3*plotColumns+6)
	require.Len(t, c.burst, 4)
	require.Len(t, c.early, 1)
	var tops []float64
	for _, p := range c.level {
		if p.Y > 1.5 && (len(tops) == 0 || p.Y > tops[len(tops)-1]) {
			tops = append(tops, p.Y)
		}
	}
	require.InDelta(t, 69, tops[len(tops)-1], 0)
	require.Contains(t, tops, 19.0)
	require.NoError(t, drawVerification(filepath.Join(t.TempDir(), "k.png"), h, v))
}

// Departures that were forced are marked at the top of their steps, in both parts.
func TestPlotsOfForcedDepartures(t *testing.T) {
	h := throttle.History{Key: "k", Policies: []throttle.PolicyChange{
		{Policy: throttle.Policy{Limit: throttle.Limit{Rate: 1, Period: time.Second, Burst: 2}}},
	}}
	for _, d := range []struct {
		seconds int
		forced  bool
	}{{0, false}, {0, false}, {1, false}, {1, true}, {1, true}, {9, false}, {10, true}} {
		at := start.Add(time.Duration(d.seconds) * time.Second)
		h.Departures = append(h.Departures, throttle.Departure{At: at, ID: "j", Cost: 1, Forced: d.forced})
	}
	c := curvesOf(h)
	require.Equal(t, plotter.XYs{{X: 1, Y: 5}, {X: 10, Y: 7}}, c.forced)
	require.Equal(t, plotter.XYs{{X: 1, Y: 4}, {X: 10, Y: 1}}, c.forcedLevel)
	require.Empty(t, c.early)
	file := filepath.Join(t.TempDir(), "k.png")
	require.NoError(t, drawVerification(file, h, h.Verify()))
	requirePixels(t, file, chart.Purple, true)
}

// A history of a single instant has an axis: the curves go on, as if nothing more left.
func TestPlotOfOneDeparture(t *testing.T) {
	c := curvesOf(throttle.History{
		Key:        "k",
		Policies:   []throttle.PolicyChange{{Policy: throttle.Policy{Limit: throttle.Limit{Rate: 4, Period: time.Second, Burst: 2}}}},
		Departures: []throttle.Departure{{At: start, ID: "j", Cost: 1}},
	})
	require.Equal(t, plotter.XYs{{}, {Y: 1}, {X: 1, Y: 1}}, c.departed)
	require.Equal(t, plotter.XYs{{Y: 2}, {X: 1, Y: 6}}, c.allowed)
	require.Equal(t, plotter.XYs{{}, {Y: 1}, {X: 0.25}, {X: 1}}, c.level)
	require.Equal(t, plotter.XYs{{Y: 2}, {X: 1, Y: 2}}, c.burst)
}

func TestTimeUnits(t *testing.T) {
	for span, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Second, 4 * time.Minute: time.Second, 5 * time.Minute: time.Minute,
		5 * time.Hour: time.Hour, 119 * time.Hour: time.Hour, 120 * time.Hour: 24 * time.Hour,
	} {
		require.Equal(t, want, timeUnit(span))
	}
}
