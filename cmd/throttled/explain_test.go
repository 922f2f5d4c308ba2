package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func TestExplain(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	load(t, r, "policies:\n- {key: acme, rate: 50/s}\n- {key: acme-*, rate: 20/s, parent: acme, quotas: [{limit: 9, per: 1h}]}\n- {key: a*, rate: 1/m}\n- {key: '*', rate: 9/m}\n")
	ask(t, r, "policy", "set", "acme-7", "--rate", "30/s", "--burst", "2")
	waiting(t, q, "acme-7", 3)
	ask(t, r, "pause", "acme-*")
	require.Equal(t, text(
		`key       acme-7`,
		`jobs      3 waiting, 0 delayed, 0 in flight`,
		`next job  JOB (waiting) is kept by a pause, at acme-7`,
		`held      paused`,
		``,
		`Policies that could govern it, in the order of precedence:`,
		`POLICY  SOURCE    IN FORCE  RATE  BURST  MAX IN FLIGHT  QUOTAS       PARENT  WEIGHT  MINIMUM  HOURS  RAMP  FURTHER`,
		`acme-7  live      yes       30/s  2      100            9/h sliding  acme    1       -        -      -     -`,
		`acme-*  file                20/s  1      100            9/h sliding  acme    1       -        -      -     -`,
		`a*      file                1/m   1      100            -            -       -       -        -      -     -`,
		`*       file                9/m   1      100            -            -       -       -        -      -     -`,
		`*       built in            10/s  1      100            -            -       -       -        -      -     -`,
		``,
		`Caps that a job must fit, from the key up to its last parent:`,
		`KEY     LEVEL  RATE  BURST  MAX IN FLIGHT  QUOTAS`,
		`acme-7  0      30/s  2      100            9/h sliding`,
		`acme    0      50/s  1      100            -`,
	), strings.Replace(ask(t, r, "explain", "acme-7"), explained(t, q, "acme-7").Job, "JOB", 1))

	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(ask(t, r, "explain", "acme-7", "--json")), &got))
	candidates, chain := got["candidates"].([]any), got["chain"].([]any)
	delete(got, "candidates")
	delete(got, "chain")
	require.Equal(t, map[string]any{
		"key": "acme-7", "waiting": 3.0, "delayed": 0.0, "in_flight": 0.0,
		"job": explained(t, q, "acme-7").Job, "job_state": "waiting", "position": 1.0, "cause": "pause", "holder": "acme-7", "paused": true, "draining": false,
	}, got)
	require.Len(t, candidates, 5)
	require.Equal(t, map[string]any{
		"in_force": false, "key": "a*", "source": "file", "rate": "1/m", "burst": 1.0, "max_in_flight": 100.0, "ageing": "1m", "listen": "obey",
	}, candidates[2])
	require.Equal(t, true, candidates[0].(map[string]any)["in_force"])
	require.Len(t, chain, 2)
	require.Equal(t, map[string]any{
		"key": "acme", "level": 0.0, "policy": map[string]any{"key": "acme", "rate": "50/s", "burst": 1.0, "max_in_flight": 100.0, "ageing": "1m", "listen": "obey"},
	}, chain[1])
}

func TestExplainOfAKeyThatIsNobodys(t *testing.T) {
	r := throttletest.StartRedis(t)
	out := ask(t, r, "explain", "k"+escape+c1)
	require.Contains(t, out, `key       "k\x1b[2J\u009b2J"`+"\njobs      0 waiting, 0 delayed, 0 in flight\nnext job  there is none\n\nPolicies")
	require.NotContains(t, out, "\x1b")
	out = ask(t, r, "explain", "k"+escape+c1, "--json")
	require.Contains(t, out, `{"key":"k\u001b[2J\u009b2J","waiting":0,`)
	require.Contains(t, out, `"cause":"idle"`)
}

// An id asks for its job, and not for the next one.
func TestExplainAJob(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	ask(t, r, "policy", "set", "k", "--rate", "1/h")
	for _, id := range []string{"a", "b", "c"} {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: id, Type: "t"})
		require.NoError(t, err)
	}
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: "late", Type: "t", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	ask(t, r, "pause", "k")
	require.Contains(t, ask(t, r, "explain", "k"), "\nnext job  a (waiting) is kept by a pause, at k\n")
	require.Contains(t, ask(t, r, "explain", "k", "c"), "\njob   c (waiting, position 3) is kept by a pause, at k\n")
	require.Regexp(t, `\njob   late \(delayed\) is delayed, until \S+Z \(in (59m|1h).*\)\n`, ask(t, r, "explain", "k", "late"))
	require.Contains(t, ask(t, r, "explain", "k", "c", "--json"), `"job":"c","job_state":"waiting","position":3,"cause":"pause"`)

	for _, args := range [][]string{{"k", "d" + escape}, {"other", "a"}} {
		code, out, stderr := try(t, r, append([]string{"explain"}, args...)...)
		require.Equal(t, exitInvalid, code)
		require.Empty(t, out)
		require.Regexp(t, "no such job|is not allowed: want 1 to 128 printable", stderr)
		require.NotContains(t, stderr, escape)
	}
}

// A job that nobody releases says so, rather than that it is about to leave.
func TestExplainWithoutAScheduler(t *testing.T) {
	r := throttletest.StartRedis(t)
	waiting(t, openAt(t, r), "k", 1)
	require.Eventually(t, func() bool {
		return strings.Contains(ask(t, r, "explain", "k", "--json"), `"cause":"scheduler"`)
	}, patience, 50*time.Millisecond)
	require.Contains(t, ask(t, r, "explain", "k"), "(waiting) waits, as no scheduler releases it: is one running?\n")
}

func TestExplainWithoutAWorker(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	serveHere(t, "--redis", r.URL(), "--scheduler-only")
	waiting(t, q, "k", 1)
	require.Eventually(t, func() bool {
		return strings.Contains(ask(t, r, "explain", "k", "--json"), `"cause":"workers"`)
	}, patience, 50*time.Millisecond)
	require.Contains(t, ask(t, r, "explain", "k"), "(released) waits, as no worker takes the jobs that were released: is one running for their pool?\n")
}

func TestExplainAnOrderedKey(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	ask(t, r, "policy", "set", "k", "--rate", "100/s", "--ordered")
	over := make(chan struct{})
	recv := newReceiver(t, func(string, *http.Request) { <-over })
	serveHere(t, "--redis", r.URL())
	t.Cleanup(func() { close(over) })
	for _, id := range []string{"a", "b"} {
		_, err := q.Enqueue(t.Context(), recv.job(t, "k", id))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(ask(t, r, "explain", "k", "--json"), `"job":"b","job_state":"waiting","position":1,"cause":"order","holder":"k"`)
	}, patience, 10*time.Millisecond)
	require.Contains(t, ask(t, r, "explain", "k"), "b (waiting) waits for an earlier job to end, as k is ordered")
	require.Contains(t, ask(t, r, "explain", "k", "a"), "a (running) is in a worker's hands\n")
}

func TestWhatHolds(t *testing.T) {
	now := time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	in := now.Add
	for _, c := range []struct {
		e    throttle.Explanation
		want string
	}{
		{throttle.Explanation{Cause: throttle.ByNothing, Until: now}, "is about to leave"},
		{throttle.Explanation{Cause: throttle.ByRate, Until: in(1234567 * time.Microsecond)}, "waits for the rate of k, until 2026-12-01T06:00:01.234Z (in 1.2s)"},
		{throttle.Explanation{Cause: throttle.ByQuota, Until: in(20 * time.Minute)}, "waits for a quota of k, until 2026-12-01T06:20:00.000Z (in 20m)"},
		{throttle.Explanation{Cause: throttle.ByParent, Holder: "a" + escape}, `waits for its turn under "a\x1b[2J"`},
		{throttle.Explanation{Cause: throttle.ByPause, Holder: "up"}, "is kept by a pause, at up"},
		{throttle.Explanation{Cause: throttle.ByCoolDown, Until: in(-time.Second)}, "waits for the end of a cool-down, at k, until 2026-12-01T05:59:59.000Z (now)"},
		{throttle.Explanation{Cause: throttle.ByHours, Until: in(26 * time.Hour)}, "waits for the hours of k, until 2026-12-02T08:00:00.000Z (in 26h)"},
		{throttle.Explanation{Cause: throttle.ByInFlight}, "waits for one in flight to end, at k"},
		{throttle.Explanation{Cause: throttle.ByDelay, Until: in(5 * time.Millisecond)}, "is delayed, as all are, until 2026-12-01T06:00:00.005Z (in 5ms)"},
		{throttle.Explanation{Cause: throttle.ByOrder}, "waits for an earlier job to end, as k is ordered: one that fails holds the line until it is done or given up"},
		{throttle.Explanation{Cause: throttle.ByWorkers}, "waits, as no worker takes the jobs that were released: is one running for their pool?"},
		{throttle.Explanation{Cause: throttle.ByScheduler}, "waits, as no scheduler releases it: is one running?"},
		{throttle.Explanation{JobState: throttle.Released}, "is on its way to a worker"},
		{throttle.Explanation{Cause: throttle.ByIdle}, "there is none"},
		{throttle.Explanation{Cause: "new\x1b"}, `"new\x1b" of k`},
	} {
		if c.e.Holder == "" {
			c.e.Holder = "k"
		}
		require.Equal(t, c.want, whatHolds(c.e, now, false))
	}
	e := throttle.Explanation{Paused: true, Draining: true, CoolUntil: in(time.Minute)}
	require.Equal(t, "paused, draining, cooling down until 2026-12-01T06:01:00.000Z (in 1m)", holdsOf(e, now))
	require.Empty(t, holdsOf(throttle.Explanation{}, now))
}
