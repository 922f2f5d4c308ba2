package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// A result is what a run of the command came to.
type result struct {
	code           int
	results, notes string
}

// command runs the command the way a shell would.
func command(ctx context.Context, args ...string) result {
	var results, notes bytes.Buffer
	code := run(ctx, args, &results, &notes)
	return result{code, results.String(), notes.String()}
}

// relaxed makes runs of the whole command fit for any machine, one with the race
// detector and hardly a processor to spare included: what is tested here is the
// command. The bounds have their tests on made-up arrivals.
func relaxed(t *testing.T) {
	t.Helper()
	usualLimits, usualBounds := limits, bounds
	t.Cleanup(func() { limits, bounds = usualLimits, usualBounds })
	limits = []throttle.Policy{
		{Key: "billing", Limit: throttle.Limit{Rate: 10, Period: time.Second, Burst: 1}},
		{Key: "crm", Limit: throttle.Limit{Rate: 4, Period: time.Second, Burst: 6}},
		{Key: "search", Limit: throttle.Limit{Rate: 15, Period: time.Second, Burst: 3}},
	}
	bounds = throttletest.Bounds{MaxExcess: 3, MinRatio: 0.3, MaxRatio: 1.2}
}

func TestMadeUpEvents(t *testing.T) {
	relaxed(t)
	plot := filepath.Join(t.TempDir(), "arrivals.png")
	r := command(t.Context(), "--for", "3s", "--out", plot)
	require.Zero(t, r.code, r)
	require.Contains(t, r.notes, "Redis is embedded at redis://127.0.0.1:")
	require.Contains(t, r.notes, "0 of 87 events, 3 keys: about 3s.\n")
	require.Contains(t, r.notes, "87 of 87 events delivered   billing 28/28  crm 16/16  search 43/43\n")
	for _, row := range []string{`billing +10/s burst 1 +28 +31 +10\.00`, `crm +4/s burst 6 +16 +18 +4\.00`, `search +15/s burst 3 +43 +48 +15\.00`} {
		require.Regexp(t, `(?m)^ *`+row+` .* 0 +0 +0$`, r.results)
	}
	require.Contains(t, r.results, "Plot of the arrivals: "+plot+"\nAll bounds kept.\n")
	requireChart(t, plot, 3)
}

func TestEventsFromFile(t *testing.T) {
	relaxed(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "events.ndjson")
	var lines strings.Builder
	for n := range 20 {
		fmt.Fprintf(&lines, `{"id":"evt_%d","key":"crm","event":"deal.won","payload":{"deal": %d,  "customer":"Größe"}}`+"\n", n, n)
		fmt.Fprintf(&lines, `{"id":"evt_%d","key":"a/b?c=d&é\n","url":"http://192.0.2.1/elsewhere","delay":"1h","body_base64":%q}`+"\n",
			n, base64.StdEncoding.EncodeToString([]byte{0, 0xff, '\n', '\r', '{', byte(n)}))
	}
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))

	plot := filepath.Join(folder, "arrivals.png")
	r := command(t.Context(), "--file", file, "--rate", "10/s", "--burst", "2", "--out", plot, "--json")
	require.Zero(t, r.code, r)
	var v struct {
		verdict
		Plot string `json:"plot"`
	}
	decoder := json.NewDecoder(strings.NewReader(r.results))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&v))
	require.Equal(t, plot, v.Plot)
	require.Equal(t, 40, v.Events)
	require.Equal(t, 44, v.Attempts)
	require.Empty(t, v.Broken)
	require.Len(t, v.Keys, 2)
	for i, want := range []figures{{Key: "crm", Limit: "4/s burst 6"}, {Key: "a/b?c=d&é\n", Limit: "10/s burst 2"}} {
		got := v.Keys[i]
		require.Equal(t, want.Key, got.Key)
		require.Equal(t, want.Limit, got.Limit)
		require.Equal(t, 20, got.Jobs)
		require.Equal(t, 22, got.Attempts)
		require.Zero(t, got.Lost+got.Duplicated+got.Damaged)
	}
	requireChart(t, plot, 2)
}

func TestRedisOfOnesOwn(t *testing.T) {
	relaxed(t)
	server := throttletest.StartRedis(t)
	args := []string{"--redis", server.URL(), "--for", "1s", "--out", filepath.Join(t.TempDir(), "p.png")}
	r := command(t.Context(), args...)
	require.Zero(t, r.code, r)
	require.NotContains(t, r.notes, "embedded")

	r = command(t.Context(), args...)
	require.Equal(t, exitNoRun, r.code, r)
	require.Contains(t, r.notes, "but this example wants an empty one")
	require.Empty(t, r.results)
}

// An interrupted run leaves no jobs behind for a receiver that is gone.
func TestInterrupted(t *testing.T) {
	server := throttletest.StartRedis(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	notes := &trigger{on: "about 25s", act: interrupt}
	var results bytes.Buffer
	code := run(ctx, []string{"--redis", server.URL(), "--out", filepath.Join(t.TempDir(), "p.png")}, &results, notes)
	require.Equal(t, exitInterrupted, code, notes.text.String())
	require.Regexp(t, `webhooks: interrupted: \d+ of 1717 events delivered\n$`, notes.text.String())
	require.Empty(t, results.String())

	queue, err := throttle.NewQueue(t.Context(), server.Client(), throttle.QueueConfig{})
	require.NoError(t, err)
	for _, p := range limits {
		info, err := queue.Key(t.Context(), p.Key)
		require.NoError(t, err)
		require.Zero(t, info.Waiting+info.Delayed+info.InFlight, p.Key)
		require.Equal(t, p.Limit, info.Policy.Limit)
	}
}

// A trigger acts when a text is written to it.
type trigger struct {
	on   string
	act  func()
	text bytes.Buffer
}

func (t *trigger) Write(b []byte) (int, error) {
	if strings.Contains(string(b), t.on) {
		t.act()
	}
	return t.text.Write(b)
}

func TestRedisAway(t *testing.T) {
	r := command(t.Context(), "--redis", "redis://:S3CRET@127.0.0.1:1/0?dial_timeout=1s&max_retries=-1")
	require.Equal(t, exitNoRun, r.code)
	require.Contains(t, r.notes, "webhooks: --redis: ")
	require.NotContains(t, r.notes, "S3CRET")
}
