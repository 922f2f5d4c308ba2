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
	require.Equal(t, "enqueue: warning: fields that mean nothing here were ignored, the first in line 1: \"event\"\n", got.err)
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
	require.Contains(t, got.err, "enqueue: line 1: key is missing: give it in the line, or with --key\n")
	require.Contains(t, got.err, "2 lines failed: 0 jobs enqueued")
	require.Equal(t, "enqueued        0\nduplicates      0\nfailed          2\nlast departure  -\n", got.out)

	got = command(t.Context(), "\n\n", "--file", "-")
	require.Zero(t, got.code, "an empty file is enqueued as a whole")
	require.Equal(t, "enqueue: warning: there are no lines with jobs in it\n", got.err)
	got = command(t.Context(), "", "--file", "-", "--json")
	require.Equal(t, result{err: "enqueue: warning: there are no lines with jobs in it\n"}, got)
}

// The warning names the line of the first field that means nothing.
func TestManyWithFieldsThatMeanNothing(t *testing.T) {
	r := throttletest.StartRedis(t)
	got := command(t.Context(), "{\"key\":\"k\"}\n\n{\"key\":\"k\",\"prio\":1}\n{\"key\":\"k\",\"event\":1}\n",
		"--redis", r.URL(), "--file", "-", "--url", "http://example.com")
	require.Zero(t, got.code)
	require.Equal(t, "enqueue: warning: fields that mean nothing here were ignored, the first in line 3: \"event\", \"prio\"\n", got.err)
}

// The flag is for jobs of which it is not known otherwise.
func TestManyWithMaxAttempts(t *testing.T) {
	r := throttletest.StartRedis(t)
	got := command(t.Context(), `{"id":"a","max_attempts":3}`+"\n"+`{"id":"b"}`, "--redis", r.URL(), "--file", "-", "--key", "k", "--url", "http://example.com", "--max-attempts", "7")
	require.Zero(t, got.code, got.err)
	for id, want := range map[string]int{"a": 3, "b": 7} {
		info, err := newQueue(t, r).Job(t.Context(), "k", id)
		require.NoError(t, err)
		require.Equal(t, want, info.Job.MaxAttempts)
	}
}

// Lines of which the TTL is over before their delay fail, by the clock of Redis.
func TestManyThatExpireDelayed(t *testing.T) {
	ahead := time.Hour
	q := &scripted{}
	noon := time.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	text := `{"id":"a","ttl":"30m","not_before":"` + noon + `"}` + "\n" +
		`{"id":"b","ttl":"90m","not_before":"` + noon + `"}` + "\n" +
		`{"id":"c","ttl":"90m"}` + "\n"
	r, err := take(t.Context(), t, q, strings.NewReader(text), 10, func(b *bulk) {
		b.now = func() time.Time { return time.Now().Add(ahead) }
	})
	require.EqualError(t, err, "1 line failed: 2 jobs enqueued")
	require.Regexp(t, `^enqueue: line 1: ttl 30m0s is not allowed: want more than the (59m[\d.]+s|1h0m0s) until it may leave: it counts from the enqueue\n$`, r.err)
	require.Len(t, q.batches[0], 2)
}
