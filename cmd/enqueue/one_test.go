package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func newQueue(t *testing.T, r *throttletest.Redis) *throttle.Queue {
	t.Helper()
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{})
	require.NoError(t, err)
	return q
}

func TestOneJobAsText(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	args := []string{"--key", "a:{b} é", "--url", "http://example.com", "--rate", "1/h", "--id"}

	got := command(t.Context(), "", append(args, "first")...)
	require.Equal(t, result{out: got.out}, got)
	require.Regexp(t, `^id         first\nstate      waiting\nposition   1\ndeparture  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \((now|in \d+ms)\)\n(held .*\n)?$`, got.out)

	got = command(t.Context(), "", append(args, "second")...)
	require.Equal(t, result{out: got.out}, got)
	require.Regexp(t, `^id         second\nstate      waiting\nposition   2\ndeparture  .*Z \(in (59m[\d.]+s|1h0m0s)\)\n(held .*\n)?$`, got.out)

	got = command(t.Context(), "", append(args, "second")...)
	require.Zero(t, got.code, "a duplicate is no failure")
	require.Regexp(t, `(?s)^id         second\nstate      waiting\nposition   2\n.*\nduplicate  yes`, got.out)

	got = command(t.Context(), "", append(args, "third", "--delay", "90s")...)
	require.Regexp(t, `^id         third\nstate      delayed\ndeparture  `, got.out)

	q := newQueue(t, r)
	info, err := q.Key(t.Context(), "a:{b} é")
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Waiting)
	require.EqualValues(t, 1, info.Delayed)
	require.Equal(t, throttle.Limit{Rate: 1, Period: time.Hour, Burst: 1}, info.Policy.Limit)
}

// Where jobs ought to have left and did not, the receipt says that nobody has them leave.
func TestOneJobThatNobodyReleases(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	require.Eventually(t, func() bool {
		got := command(t.Context(), "", "--key", "k", "--url", "http://example.com", "--rate", "1/h")
		require.Zero(t, got.code)
		return strings.HasSuffix(got.out, "\nheld       no scheduler releases it: is throttled serve running?\n")
	}, 20*time.Second, 50*time.Millisecond)
}

func TestOneJobWithMaxAttempts(t *testing.T) {
	r := throttletest.StartRedis(t)
	got := command(t.Context(), "", "--redis", r.URL(), "--key", "k", "--url", "http://example.com", "--id", "a", "--max-attempts", "3")
	require.Zero(t, got.code, got.err)
	info, err := newQueue(t, r).Job(t.Context(), "k", "a")
	require.NoError(t, err)
	require.Equal(t, 3, info.Job.MaxAttempts)
}

func TestOneJobAsJSON(t *testing.T) {
	r := throttletest.StartRedis(t)
	before := time.Now().Truncate(time.Millisecond)
	got := command(t.Context(), "\x00\xff\n\r{", "--redis", r.URL(), "--json", "--key", "<&>", "--url", "http://example.com/",
		"--data-file", "-", "--header", "X-Time: 12:30", "--cost", "3", "--rate", "10/s", "--burst", "7")
	require.Equal(t, result{out: got.out}, got)
	require.Contains(t, got.out, `"key":"<&>"`, "keys are printed as they are")

	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.out), &fields))
	at, err := time.Parse(time.RFC3339, fields["estimated_departure"].(string))
	require.NoError(t, err)
	require.False(t, at.Before(before))

	_, err = newQueue(t, r).Job(t.Context(), "<&>", fields["id"].(string))
	require.NoError(t, err)
	delete(fields, "id")
	delete(fields, "estimated_departure")
	require.Equal(t, map[string]any{
		"key": "<&>", "state": "waiting", "position": 1.0, "duplicate": false, "replaced": false, "dropped": false,
	}, fields)
}

func TestOneJobWithTheLargestBody(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	for _, flag := range []string{"--data", "--data-file"} {
		value, stdin := strings.Repeat("x", throttle.DefaultMaxJobSize), ""
		if flag == "--data-file" {
			value, stdin = "-", value
		}
		got := command(t.Context(), stdin, "--key", "k", "--url", "http://example.com/", flag, value)
		require.Equal(t, result{out: got.out}, got)
	}
	info, err := newQueue(t, r).Key(t.Context(), "k")
	require.NoError(t, err)
	require.EqualValues(t, 2, info.Waiting)
}

func TestDelayCountsFromTheClockOfRedis(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		theirs := &target{ahead: ahead}
		require.WithinDuration(t, time.Now().Add(ahead), theirs.now(), time.Second)
	}
	r := throttletest.StartRedis(t)
	connected, err := connect(t.Context(), r.URL(), "--redis")
	require.NoError(t, err)
	defer connected.close()
	require.Less(t, connected.ahead.Abs(), 100*time.Millisecond, "one machine, one clock")
}

func TestDeparture(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.FixedZone("", 3600))
	for in, want := range map[time.Duration]string{
		-time.Hour:              "2026-01-02T01:04:05.006Z (now)",
		0:                       "2026-01-02T02:04:05.006Z (now)",
		400 * time.Microsecond:  "2026-01-02T02:04:05.006Z (now)",
		12 * time.Millisecond:   "2026-01-02T02:04:05.018Z (in 12ms)",
		1234 * time.Millisecond: "2026-01-02T02:04:06.240Z (in 1.2s)",
		25 * time.Hour:          "2026-01-03T03:04:05.006Z (in 25h0m0s)",
	} {
		require.Equal(t, want, departure(now.Add(in), now))
	}
}

func TestOneTakesTheShardsThatAreStored(t *testing.T) {
	r := throttletest.StartRedis(t)
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{Shards: 4})
	require.NoError(t, err)
	got := command(t.Context(), "", "--redis", r.URL(), "--key", "k", "--url", "http://example.com", "--id", "a")
	require.Zero(t, got.code, got.err)
	_, err = q.Job(t.Context(), "k", "a")
	require.NoError(t, err)
}
