package main

import (
	"encoding/json"
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
		`next job  is kept by a pause, at acme-7`,
		`held      paused`,
		``,
		`Policies that could govern it, in the order of precedence:`,
		`POLICY  SOURCE    IN FORCE  RATE  BURST  MAX IN FLIGHT  QUOTAS       PARENT  WEIGHT  MINIMUM  HOURS  RAMP`,
		`acme-7  live      yes       30/s  2      100            9/h sliding  acme    1       -        -      -`,
		`acme-*  file                20/s  1      100            9/h sliding  acme    1       -        -      -`,
		`a*      file                1/m   1      100            -            -       -       -        -      -`,
		`*       file                9/m   1      100            -            -       -       -        -      -`,
		`*       built in            10/s  1      100            -            -       -       -        -      -`,
		``,
		`Caps that a job must fit, from the key up to its last parent:`,
		`KEY     LEVEL  RATE  BURST  MAX IN FLIGHT  QUOTAS`,
		`acme-7  0      30/s  2      100            9/h sliding`,
		`acme    0      50/s  1      100            -`,
	), ask(t, r, "explain", "acme-7"))

	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(ask(t, r, "explain", "acme-7", "--json")), &got))
	candidates, chain := got["candidates"].([]any), got["chain"].([]any)
	delete(got, "candidates")
	delete(got, "chain")
	require.Equal(t, map[string]any{
		"key": "acme-7", "waiting": 3.0, "delayed": 0.0, "in_flight": 0.0,
		"cause": "pause", "holder": "acme-7", "paused": true, "draining": false,
	}, got)
	require.Len(t, candidates, 5)
	require.Equal(t, map[string]any{
		"in_force": false, "key": "a*", "source": "file", "rate": "1/m", "burst": 1.0, "max_in_flight": 100.0,
	}, candidates[2])
	require.Equal(t, true, candidates[0].(map[string]any)["in_force"])
	require.Len(t, chain, 2)
	require.Equal(t, map[string]any{
		"key": "acme", "level": 0.0, "policy": map[string]any{"key": "acme", "rate": "50/s", "burst": 1.0, "max_in_flight": 100.0},
	}, chain[1])
}

// The table lists a pattern that is asked for as a key once.
func TestExplainAPattern(t *testing.T) {
	r := throttletest.StartRedis(t)
	ask(t, r, "policy", "set", "a*", "--rate", "1/s")
	out := ask(t, r, "explain", "a*")
	require.Regexp(t, `\na\* +live +yes +1/s .*\n\* +built in +10/s `, out)
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

func TestNextJob(t *testing.T) {
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
		{throttle.Explanation{Cause: throttle.ByIdle}, "there is none"},
		{throttle.Explanation{Cause: "new\x1b"}, `"new\x1b" of k`},
	} {
		if c.e.Holder == "" {
			c.e.Holder = "k"
		}
		require.Equal(t, c.want, nextJob(c.e, now))
	}
	e := throttle.Explanation{Paused: true, Draining: true, CoolUntil: in(time.Minute)}
	require.Equal(t, "paused, draining, cooling down until 2026-12-01T06:01:00.000Z (in 1m)", holdsOf(e, now))
	require.Empty(t, holdsOf(throttle.Explanation{}, now))
}
