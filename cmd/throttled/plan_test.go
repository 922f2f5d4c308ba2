package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/internal/chart"
	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// planned6 runs plan for a line that begins to wait at 06:00 on a Tuesday, without a Redis.
func planned6(t *testing.T, args ...string) string {
	t.Helper()
	env := map[string]string{"WEIR_REDIS": "redis://127.0.0.1:1"}
	s := begin(env, append([]string{"plan", "--start", "2026-12-01T06:00:00Z"}, args...)...)
	require.Zero(t, s.exit(t, patience), "%s", &s.stderr)
	require.Empty(t, s.stderr.String())
	return s.stdout.String()
}

func TestPlanWithoutRedis(t *testing.T) {
	require.Equal(t, text(
		`policy  rate 20/s, burst 5, max_in_flight 100`,
		`line    10000 jobs of cost 1, waiting from 2026-12-01T06:00:00.000Z`,
		`first   2026-12-01T06:00:00.000Z (now)`,
		`last    2026-12-01T06:08:19.750Z (in 8m19.8s)`,
		``,
		`Departed by then:`,
		`JOBS   SHARE  AT                        AFTER`,
		`0      0%     2026-12-01T06:00:00.000Z  0s`,
		`1000   10%    2026-12-01T06:00:49.750Z  49.75s`,
		`2000   20%    2026-12-01T06:01:39.750Z  1m39.75s`,
		`3000   30%    2026-12-01T06:02:29.750Z  2m29.75s`,
		`4000   40%    2026-12-01T06:03:19.750Z  3m19.75s`,
		`5000   50%    2026-12-01T06:04:09.750Z  4m9.75s`,
		`6000   60%    2026-12-01T06:04:59.750Z  4m59.75s`,
		`7000   70%    2026-12-01T06:05:49.750Z  5m49.75s`,
		`8000   80%    2026-12-01T06:06:39.750Z  6m39.75s`,
		`9000   90%    2026-12-01T06:07:29.750Z  7m29.75s`,
		`10000  100%   2026-12-01T06:08:19.750Z  8m19.75s`,
	), planned6(t, "--rate", "20/s", "--burst", "5", "--jobs", "10000"))

	require.Equal(t, text(`{"policies":[{"key":"*","rate":"1/h","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey"}],"jobs":2,"cost":3,`+
		`"start":"2026-12-01T06:00:00.000Z","first":"2026-12-01T06:00:00.000Z","last":"2026-12-01T09:00:00.000Z","seconds":10800,`+
		`"steps":[{"jobs":0,"at":"2026-12-01T06:00:00.000Z","seconds":0},{"jobs":1,"at":"2026-12-01T06:00:00.000Z","seconds":0},`+
		`{"jobs":2,"at":"2026-12-01T09:00:00.000Z","seconds":10800}]}`), planned6(t, "--rate", "1/h", "--jobs", "2", "--cost", "3", "--json"))
}

// Whatever a flag changes can be seen in when the last one leaves.
func TestPlanWithFlags(t *testing.T) {
	for _, c := range []struct {
		flags []string
		last  string
	}{
		{nil, "2026-12-01T06:00:09.900Z"},
		{[]string{"--burst", "100"}, "2026-12-01T06:00:00.000Z"},
		{[]string{"--quota", "50/h fixed"}, "2026-12-01T07:00:0"},
		{[]string{"--open", "mon-fri 09:00-18:00", "--zone", "Europe/Berlin"}, "2026-12-01T08:00:0"},
		{[]string{"--run", "5s", "--max-in-flight", "1"}, "2026-12-01T06:08:1"},
		{[]string{"--run", "5s", "--ordered"}, "2026-12-01T06:08:1"},
		{[]string{"--run", "5s"}, "2026-12-01T06:00:09.900Z"},
	} {
		out := planned6(t, append([]string{"--rate", "10/s", "--jobs", "100"}, c.flags...)...)
		require.Contains(t, out, "\nlast    "+c.last, "%v", c.flags)
	}
	out := planned6(t, "--rate", "1/h", "--jobs", "1000000000", "--cost", "1000")
	require.Contains(t, out, "\nlast    158 years or more after that\n")
	require.Contains(t, out, "\n1000000000  100%   -                         158 years or more\n")
}

func TestPlanOfAKey(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, "policies:\n- {key: acme, rate: 1/s}\n- {key: other, rate: 1/m}\n- {key: a*, rate: 20/s, parent: acme}\n")
	at := func(args ...string) (v planView) {
		out := ask(t, r, append([]string{"plan", "--jobs", "61", "--json", "--start", "2026-12-01T06:00:00Z"}, args...)...)
		require.NoError(t, json.Unmarshal([]byte(out), &v))
		return v
	}
	v := at("acme-7")
	require.Len(t, v.Policies, 2)
	require.Equal(t, []string{"acme-7", "20/s", "acme"}, []string{v.Policies[0].Key, v.Policies[0].Rate, v.Policies[0].Parent})
	require.Equal(t, "acme", v.Policies[1].Key)
	require.InDelta(t, 60, v.Seconds, 1e-3)
	require.InDelta(t, 60, at("acme-7", "--rate", "30/s").Seconds, 1e-3, "the parent's still")
	require.InDelta(t, 120, at("acme-7", "--rate", "30/m").Seconds, 1e-3)
	require.InDelta(t, 3, at("acme-7", "--no-parent").Seconds, 1e-3)
	require.InDelta(t, 3600, at("acme-7", "--parent", "other").Seconds, 1e-3)
	require.InDelta(t, 3600, at("--rate", "30/s", "--parent", "other").Seconds, 1e-3)
	require.InDelta(t, 6, at("nobody's").Seconds, 1e-3, "the built-in policy")

	// Nothing of it is stored.
	require.Equal(t, "20/s burst 1", explained(t, openAt(t, r), "acme-7").Chain[0].Policy.Limit.String())
	require.Regexp(t, `^policy +rate 20/s, burst 1, max_in_flight 100, parent acme, weight 1\nbelow acme +rate 1/s, burst 1, max_in_flight 100\nline +2 jobs`,
		ask(t, r, "plan", "acme-7", "--jobs", "2"))

	from := time.Now().Add(-time.Second)
	begun, err := time.Parse(time.RFC3339, at("acme-7", "--start", "2026-12-01T06:00:00+01:00").Start)
	require.NoError(t, err)
	require.True(t, begun.Equal(time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC)))
	var now planView
	require.NoError(t, json.Unmarshal([]byte(ask(t, r, "plan", "acme-7", "--jobs", "1", "--json")), &now))
	begun, err = time.Parse(time.RFC3339, now.Start)
	require.NoError(t, err)
	require.WithinRange(t, begun, from, time.Now().Add(time.Second))
}

func TestPlanPlots(t *testing.T) {
	for name, args := range map[string][]string{
		"one job": {"--jobs", "1"}, "many": {"--jobs", "1000000", "--quota", "9000/h", "--open", "mon-fri 09:00-18:00"},
		"for ever": {"--jobs", "1000000000", "--cost", "1000000"},
	} {
		for _, ext := range []string{".svg", ".PNG"} {
			file := filepath.Join(t.TempDir(), "plan"+ext)
			out := planned6(t, append([]string{"--rate", "20/s", "--plot", file}, args...)...)
			require.Contains(t, out, "\nlast ", name)
			if ext == ".svg" {
				requireDrawing(t, file, "departed by then", true)
			} else {
				requirePixels(t, file, chart.Blue, true)
			}
		}
	}
	s := begin(nil, "plan", "--rate", "1/s", "--jobs", "1", "--plot", filepath.Join(t.TempDir(), "none", "k.svg"))
	require.Equal(t, exitInvalid, s.exit(t, patience))
	require.Empty(t, s.stdout.String())
	require.Contains(t, s.stderr.String(), "--plot: open ")
}

// The plot of a key names it, and takes nothing from it that steers a viewer.
func TestPlanPlotOfAKey(t *testing.T) {
	r := throttletest.StartRedis(t)
	file := filepath.Join(t.TempDir(), "plan.svg")
	ask(t, r, "plan", "k"+escape, "--jobs", "5", "--plot", file)
	requireDrawing(t, file, `k\x1b[2J`, true)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.NotZero(t, info.Size())
}

// Each departure that is told alone is a step. A curve once rose by a job over the time in
// which nothing left.
func TestPlanStairs(t *testing.T) {
	for _, c := range []struct {
		jobs int64
		most float64 // that rises other than at once, of the span
	}{{100, 0}, {500, 0}, {501, 1. / 100}, {20_000, 1. / 100}} {
		points, _, err := planCurve(throttle.PlanRequest{
			Policies: []throttle.Policy{{
				Limit:  throttle.Limit{Rate: 100, Period: time.Second, Burst: 1},
				Quotas: []throttle.Quota{{Limit: c.jobs * 3 / 10, Per: 10 * time.Minute}},
			}},
			Jobs: c.jobs, Start: start,
		})
		require.NoError(t, err)
		last, flat := points[len(points)-1], 0.0
		for i, p := range points[1:] {
			before := points[i]
			if p.Y == before.Y {
				flat += p.X - before.X
				continue
			}
			require.LessOrEqual(t, p.X-before.X, c.most*last.X, "%d jobs: %v to %v", c.jobs, before, p)
		}
		require.Greater(t, flat, 0.05*last.X, "%d jobs", c.jobs)
		require.InDelta(t, c.jobs, last.Y, 0)
	}
}

// Where nothing leaves for a while, the curve stays level: it has a point at both ends.
func TestPlanCurve(t *testing.T) {
	opening, err := throttle.ParseOpening("09:00-10:00")
	require.NoError(t, err)
	points, unit, err := planCurve(throttle.PlanRequest{
		Policies: []throttle.Policy{{Limit: throttle.Limit{Rate: 10, Period: time.Second, Burst: 1}, Hours: &throttle.Hours{Open: []throttle.Opening{opening}}}},
		Jobs:     150_000, Start: start,
	})
	require.NoError(t, err)
	require.Equal(t, time.Hour, unit)
	require.Less(t, len(points), 20*planParts)
	for i, p := range points[1:] {
		before := points[i]
		require.GreaterOrEqual(t, p.X, before.X)
		require.GreaterOrEqual(t, p.Y, before.Y)
		if p.X-before.X > 10 { // overnight
			require.LessOrEqual(t, p.Y-before.Y, 10.0, fmt.Sprint(before, p))
		}
	}
	require.InDelta(t, 150_000, points[len(points)-1].Y, 0)
	require.Less(t, len(strings.Split(planTitle(throttle.PlanRequest{
		Jobs: 1, Policies: []throttle.Policy{{Key: strings.Repeat("k", 500), Quotas: make([]throttle.Quota, 8)}},
	}), "\n")[1]), 130)
}
