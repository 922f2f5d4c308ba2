package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

// events makes a file of n lines for three keys.
func events(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"evt_%04d\",\"key\":\"key %d\",\"event\":\"push\",\"payload\":{ \"n\": %d, \"text\":\"é<&>\\u2028\" }}\n", i, i%3, i)
	}
	return b.String()
}

func TestManyFromAFile(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	name := filepath.Join(t.TempDir(), "events.ndjson")
	require.NoError(t, os.WriteFile(name, []byte(events(1200)), 0o600))

	got := command(t.Context(), "", "--file", name, "--url", "http://example.com", "--rate", "1/s")
	require.Zero(t, got.code)
	require.Equal(t, "enqueue: warning: fields that mean nothing here were ignored: \"event\"\n", got.err)
	require.Regexp(t, `^enqueued        1200\nduplicates      0\nfailed          0\nlast departure  \S+Z \(in 6m[34]\d(\.\d)?s\)\n$`, got.out)

	q := newQueue(t, r)
	for i := range 3 {
		info, err := q.Key(t.Context(), fmt.Sprintf("key %d", i))
		require.NoError(t, err)
		require.EqualValues(t, 400, info.Waiting)
	}
	job, err := q.Job(t.Context(), "key 2", "evt_1199")
	require.NoError(t, err)
	require.EqualValues(t, 400, job.Position, "jobs of a key stand in the order of the file")

	got = command(t.Context(), "", "--file", name, "--url", "http://example.com")
	require.Zero(t, got.code, "the same file again changes nothing")
	require.Contains(t, got.out, "enqueued        0\nduplicates      1200\nfailed          0\n")
}

func TestManyAsJSONWithBadLines(t *testing.T) {
	r := throttletest.StartRedis(t)
	text := "\xef\xbb\xbf" + `{"id":"a","key":"k"}` + "\r\n\n" +
		`{"id":"b","key":""}` + "\n" +
		"not JSON\n" +
		`{"id":"a","key":"k"}` + "\n" +
		`{"key":"k","body":"` + strings.Repeat("x", 1<<20+1) + `"}` + "\n" +
		strings.Repeat("x", 9<<20) + "\n" +
		"{\"key\":\"\xff\"}\n" +
		`{"id":"c","key":"other"}`
	got := command(t.Context(), text, "--redis", r.URL(), "--file", "-", "--json", "--url", "http://example.com", "--batch", "2")
	require.Equal(t, exitSomeFailed, got.code)

	var lines []printed
	for line := range strings.Lines(got.out) {
		var p printed
		require.NoError(t, json.Unmarshal([]byte(line), &p))
		require.NotEmpty(t, p.EstimatedDeparture)
		p.EstimatedDeparture = ""
		lines = append(lines, p)
	}
	require.Equal(t, []printed{
		{ID: "a", Key: "k", State: "waiting", Position: 1, Line: 1},
		{ID: "a", Key: "k", State: "waiting", Position: 1, Duplicate: true, Line: 5},
		{ID: "c", Key: "other", State: "waiting", Position: 1, Line: 9},
	}, lines)

	complaints := strings.Split(strings.TrimSpace(got.err), "\n")
	require.Len(t, complaints, 6)
	for i, want := range []string{
		`line 3, column 17: key "" is not allowed`,
		"line 4, column 2: not valid JSON",
		"line 6, column 19: body of 1048577 bytes is not allowed: want at most 1048576 bytes",
		"line 7: longer than 8388608 bytes",
		"line 8, column 9: not valid UTF-8",
		"5 lines failed: 2 jobs enqueued, 1 duplicate left alone",
	} {
		require.Contains(t, complaints[i], want)
		require.Less(t, len(complaints[i]), 300)
	}
}

func TestManyWithNothingGood(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	got := command(t.Context(), "{}\n{}\n", "--file", "-")
	require.Equal(t, exitInvalid, got.code, "nothing enqueued")
	require.Contains(t, got.err, "line 1: key")
	require.Contains(t, got.err, "2 lines failed: 0 jobs enqueued")
	require.Equal(t, "enqueued        0\nduplicates      0\nfailed          2\nlast departure  -\n", got.out)

	got = command(t.Context(), "\n\n", "--file", "-")
	require.Zero(t, got.code, "an empty file is enqueued as a whole")
	require.Empty(t, got.err)
}
