package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func policyAt(rate int64) throttle.Limit {
	return throttle.Limit{Rate: rate, Period: time.Second, Burst: 1}
}

const fullPolicies = `policies:
- {key: acme, rate: 50/s}
- key: acme-*
  rate: 20/s
  burst: 5
  max_in_flight: 7
  quotas:
  - {limit: 1000, per: 1h}
  - {limit: 9000, per: 24h, window: fixed, zone: Europe/Berlin}
  parent: acme
  weight: 2
  minimum: 1/s
  hours: {zone: Europe/Berlin, open: ["mon-fri 09:00-18:00", "sat 10:00-12:00"]}
  ramp: {from: 10%, over: 5m}
`

const waitingPolicies = `policies:
- {key: crm, rate: 5/s, ordered: true, ageing: 30s, job_ttl: 48h, max_waiting: 1000, overflow: drop_oldest, history: 5000, keep_done: 24h}
- {key: few, rate: 5/s, max_waiting: 10}
`

// load stores the policies of a config file the way serve does.
func load(t *testing.T, r *throttletest.Redis, file string) {
	t.Helper()
	s := begin(nil, "serve", "--scheduler-only", "--redis", r.URL(), "--listen", "none", "--log-format", "json", "--config", configFile(t, file))
	require.Eventually(t, func() bool { return s.stderr.attribute("started", "policies") != "" }, patience, time.Millisecond)
	s.signals <- os.Interrupt
	require.Zero(t, s.exit(t, patience))
}

func TestPolicyList(t *testing.T) {
	r := throttletest.StartRedis(t)
	require.Equal(t, text(
		"KEY  SOURCE    RATE  BURST  MAX IN FLIGHT  QUOTAS  PARENT  WEIGHT  MINIMUM  HOURS  RAMP  FURTHER",
		"*    built in  10/s  1      100            -       -       -       -        -      -     -",
	), ask(t, r, "policy", "list"))

	load(t, r, fullPolicies)
	ask(t, r, "policy", "set", "*", "--rate", "1/m")
	ask(t, r, "policy", "set", "acme", "--rate", "40/s")
	ask(t, r, "policy", "set", "a"+escape, "--rate", "1/h")
	require.Equal(t, text(
		`KEY         SOURCE          RATE  BURST  MAX IN FLIGHT  QUOTAS                                      PARENT  WEIGHT  MINIMUM  HOURS                                               RAMP    FURTHER`,
		`*           live            1/m   1      100            -                                           -       -       -        -                                                   -       -`,
		`"a\x1b[2J"  live            1/h   1      100            -                                           -       -       -        -                                                   -       -`,
		`acme        live            40/s  1      100            -                                           -       -       -        -                                                   -       -`,
		`acme        file, replaced  50/s  1      100            -                                           -       -       -        -                                                   -       -`,
		`acme-*      file            20/s  5      7              1000/h sliding, 9000/d fixed Europe/Berlin  acme    2       1/s      mon-fri 09:00-18:00, sat 10:00-12:00 Europe/Berlin  10% 5m  -`,
	), ask(t, r, "policy", "list"))
	require.Equal(t, text(
		`{"key":"*","source":"live","rate":"1/m","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey","replaced":false}`,
		`{"key":"a\u001b[2J","source":"live","rate":"1/h","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey","replaced":false}`,
		`{"key":"acme","source":"live","rate":"40/s","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey","replaced":false}`,
		`{"key":"acme","source":"file","rate":"50/s","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey","replaced":true}`,
		`{"key":"acme-*","source":"file","rate":"20/s","burst":5,"max_in_flight":7,"quotas":[{"limit":1000,"per":"1h","window":"sliding"},{"limit":9000,"per":"24h","window":"fixed","zone":"Europe/Berlin"}],`+
			`"parent":"acme","weight":2,"minimum":"1/s","hours":{"zone":"Europe/Berlin","open":["mon-fri 09:00-18:00","sat 10:00-12:00"]},"ramp":{"from":"10%","over":"5m"},"ageing":"1m","listen":"obey","replaced":false}`,
	), ask(t, r, "policy", "list", "--json"))
}

func TestPolicyGet(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, fullPolicies)
	require.Equal(t, text(
		"key            acme-7",
		"policy         acme-* (file)",
		"rate           20/s",
		"burst          5",
		"max_in_flight  7",
		"quotas         1000/h sliding, 9000/d fixed Europe/Berlin",
		"parent         acme",
		"weight         2",
		"minimum        1/s",
		"hours          mon-fri 09:00-18:00, sat 10:00-12:00 Europe/Berlin",
		"ramp           10% 5m",
		"ordered        -",
		"ageing         1m",
		"job_ttl        -",
		"max_waiting    -",
		"overflow       -",
		"history        -",
		"keep_done      -",
		"events         -",
		"listen         obey",
		"floor          -",
		"circuit        -",
	), ask(t, r, "policy", "get", "acme-7"))
	require.Equal(t, text(
		`{"governs":"other","key":"*","source":"built in","rate":"10/s","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey"}`,
	), ask(t, r, "policy", "get", "other", "--json"))
	require.Contains(t, ask(t, r, "policy", "get", "acme-*"), "policy         acme-* (file)\n", "a pattern has the policy under its own name")
	require.Contains(t, ask(t, r, "policy", "get", "x"+c1), `key            "x\u009b2J"`)
}

func TestPoliciesOfWaiting(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, waitingPolicies)
	require.Equal(t, text(
		"KEY  SOURCE    RATE  BURST  MAX IN FLIGHT  QUOTAS  PARENT  WEIGHT  MINIMUM  HOURS  RAMP  FURTHER",
		"*    built in  10/s  1      100            -       -       -       -        -      -     -",
		"crm  file      5/s   1      100            -       -       -       -        -      -     "+
			"ordered true, ageing 30s, job_ttl 48h, max_waiting 1000, overflow drop_oldest, history 5000, keep_done 24h",
		"few  file      5/s   1      100            -       -       -       -        -      -     max_waiting 10, overflow refuse",
	), ask(t, r, "policy", "list"))
	require.Contains(t, ask(t, r, "policy", "get", "crm"), text(
		"ramp           -",
		"ordered        true",
		"ageing         30s",
		"job_ttl        48h",
		"max_waiting    1000",
		"overflow       drop_oldest",
		"history        5000",
		"keep_done      24h",
		"events         -",
		"listen         obey",
		"floor          -",
		"circuit        -",
	))
	require.Equal(t, text(`{"governs":"crm","key":"crm","source":"file","rate":"5/s","burst":1,"max_in_flight":100,`+
		`"ordered":true,"ageing":"30s","job_ttl":"48h","max_waiting":1000,"overflow":"drop_oldest","history":5000,"keep_done":"24h","listen":"obey"}`),
		ask(t, r, "policy", "get", "crm", "--json"))
	require.Empty(t, ask(t, r, "policy", "diff", "--config", configFile(t, waitingPolicies)))

	const begin = "crm (live): rate 5/s, burst 1, max_in_flight 100"
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--ageing", "0", "--history", "0"}, ", ordered true, job_ttl 48h, max_waiting 1000, overflow drop_oldest, keep_done 24h"},
		{[]string{"--max-waiting", "5"}, ", ordered true, job_ttl 48h, max_waiting 5, overflow drop_oldest, keep_done 24h"},
		{[]string{"--max-waiting", "0"}, ", ordered true, job_ttl 48h, keep_done 24h"},
		{[]string{"--ordered=false", "--job-ttl", "0", "--keep-done", "0"}, ""},
		{[]string{"--max-waiting", "7"}, ", max_waiting 7, overflow refuse"},
		{[]string{"--overflow", "drop_newest", "--ageing", "1m"}, ", max_waiting 7, overflow drop_newest"},
		{
			[]string{"--ordered", "--ageing", "2m", "--job-ttl", "90m", "--max-waiting", "8", "--overflow", "refuse", "--history", "9", "--keep-done", "1h"},
			", ordered true, ageing 2m, job_ttl 1h30m, max_waiting 8, overflow refuse, history 9, keep_done 1h",
		},
	} {
		require.Equal(t, begin+step.want+"\n", ask(t, r, append([]string{"policy", "set", "crm"}, step.args...)...))
	}
	code, out, stderr := try(t, r, "policy", "diff", "--config", configFile(t, waitingPolicies))
	require.Equal(t, exitFailed, code)
	require.Empty(t, stderr)
	require.Equal(t, text(
		"KEY  FIELD        FILE         STORED  SOURCE",
		"crm  ageing       30s          2m      live",
		"crm  job_ttl      48h          1h30m   live",
		"crm  max_waiting  1000         8       live",
		"crm  overflow     drop_oldest  refuse  live",
		"crm  history      5000         9       live",
		"crm  keep_done    24h          1h      live",
	), out)
}

func TestPolicySetChangesOnlyWhatItIsTold(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, fullPolicies)
	set := func(args ...string) string { return ask(t, r, append([]string{"policy", "set"}, args...)...) }
	const rest = "quotas 1000/h sliding, 9000/d fixed Europe/Berlin, parent acme, weight 2, minimum 1/s, " +
		"hours mon-fri 09:00-18:00, sat 10:00-12:00 Europe/Berlin, ramp 10% 5m\n"
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"acme-7", "--rate", "30/s"}, "acme-7 (live): rate 30/s, burst 5, max_in_flight 7, " + rest},
		{[]string{"acme-7", "--burst", "6"}, "acme-7 (live): rate 30/s, burst 6, max_in_flight 7, " + rest},
		{[]string{"acme-*", "--max-in-flight", "8"}, "acme-* (live): rate 20/s, burst 5, max_in_flight 8, " + rest},
		{
			[]string{"acme-7", "--quota", "5/s", "--quota", "7/1h30m fixed", "--open", "22:00-02:00", "--ramp", "2.5% 1m", "--weight", "9", "--minimum", "30/m"},
			"acme-7 (live): rate 30/s, burst 6, max_in_flight 7, quotas 5/s sliding, 7/1h30m0s fixed, parent acme, weight 9, minimum 30/m, hours 22:00-02:00 Europe/Berlin, ramp 2.5% 1m\n",
		},
		{
			[]string{"acme-7", "--zone", "UTC", "--no-minimum", "--no-quotas", "--no-ramp"},
			"acme-7 (live): rate 30/s, burst 6, max_in_flight 7, parent acme, weight 9, hours 22:00-02:00 UTC\n",
		},
		{[]string{"acme-7", "--no-parent", "--no-hours", "--no-quotas=false"}, "acme-7 (live): rate 30/s, burst 6, max_in_flight 7\n"},
		{[]string{"acme-7", "--parent", "acme"}, "acme-7 (live): rate 30/s, burst 6, max_in_flight 7, parent acme, weight 1\n"},
		{[]string{"new", "--burst", "2"}, "new (live): rate 10/s, burst 2, max_in_flight 100\n"},
		{[]string{"a" + escape, "--rate", "1/s"}, `"a\x1b[2J" (live): rate 1/s, burst 1, max_in_flight 100` + "\n"},
	} {
		require.Equal(t, step.want, set(step.args...))
	}
	require.Equal(t, text(`{"governs":"k","key":"k","source":"live","rate":"3/m","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey"}`), set("k", "--rate", "3/m", "--json"))
	require.Contains(t, ask(t, r, "policy", "get", "k"), "k (live)\nrate           3/m\n", "it is stored")
	require.Contains(t, ask(t, r, "policy", "get", "acme-8"), "max_in_flight  8\n")
}

// A key whose jobs bring a policy has that one changed, and stays under its parent.
func TestPolicySetOfAKeyWithABroughtPolicy(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, fullPolicies)
	_, err := openAt(t, r).Enqueue(t.Context(), throttle.Job{Key: "acme-7", Type: "t", Policy: &throttle.Policy{Limit: policyAt(3), MaxInFlight: 2}})
	require.NoError(t, err)
	require.Contains(t, ask(t, r, "policy", "get", "acme-7"), "acme-7 (job)\nrate           3/s\nburst          1\nmax_in_flight  2\nquotas         -\nparent         acme\n")
	require.Equal(t, "acme-7 (live): rate 3/s, burst 4, max_in_flight 2, parent acme, weight 2, minimum 1/s\n",
		ask(t, r, "policy", "set", "acme-7", "--burst", "4"))
}

func TestPolicySetIsRefusedWhole(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, fullPolicies)
	before := ask(t, r, "policy", "list")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"k", "--parent", "none"}, `the live policy of "k": parent "none" is not allowed: want a key that has a policy of its own`},
		{[]string{"k", "--weight", "2"}, "weight 2 is not allowed: want none without a parent"},
		{[]string{"k", "--overflow", "drop_oldest"}, `overflow "drop_oldest" is not allowed: want none without max_waiting`},
		{[]string{"k", "--zone", "UTC"}, `--zone needs hours, and "k" has none: give --open beside it`},
		{[]string{"acme-7", "--rate", "1/m"}, `minimum "1/s" is not allowed: want at most the policy's own rate of 1/m`},
		{[]string{"acme", "--parent", "acme"}, `parent "acme" is not allowed: want another key than the policy's own`},
		{[]string{"k", "--parent", "ac*"}, `parent "ac*" is not allowed: want an exact key, without *`},
	} {
		code, out, stderr := try(t, r, append([]string{"policy", "set"}, c.args...)...)
		require.Equal(t, exitInvalid, code)
		require.Empty(t, out)
		require.Equal(t, "throttled: "+c.want+"\n", stderr)
	}
	require.Equal(t, before, ask(t, r, "policy", "list"))
}

func TestPolicyRemove(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, "policies: [{key: k, rate: 5/s}]\n")
	ask(t, r, "policy", "set", "k", "--rate", "6/s")
	ask(t, r, "policy", "set", "x*", "--rate", "7/s")
	require.Equal(t, "k: live policy removed, governed by k (file) now: rate 5/s, burst 1, max_in_flight 100\n", ask(t, r, "policy", "remove", "k"))
	require.Equal(t, "k: there was no live policy, governed by k (file): rate 5/s, burst 1, max_in_flight 100\n", ask(t, r, "policy", "remove", "k"))
	require.Equal(t, text(`{"removed":true,"governs":"x*","key":"*","source":"built in","rate":"10/s","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey"}`), ask(t, r, "policy", "remove", "x*", "--json"))
	require.Equal(t, text(`{"removed":false,"governs":"x*","key":"*","source":"built in","rate":"10/s","burst":1,"max_in_flight":100,"ageing":"1m","listen":"obey"}`), ask(t, r, "policy", "remove", "x*", "--json"))

	ask(t, r, "policy", "set", "up", "--rate", "1/s")
	ask(t, r, "policy", "set", "child", "--parent", "up")
	code, out, stderr := try(t, r, "policy", "remove", "up")
	require.Equal(t, exitInvalid, code)
	require.Empty(t, out)
	require.Equal(t, `throttled: without the live policy of "up", the live policy of "child": parent "up" is not allowed: want a key that has a policy of its own`+"\n", stderr)
}

func TestPolicyDiff(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, fullPolicies)
	same := configFile(t, fullPolicies)
	require.Empty(t, ask(t, r, "policy", "diff", "--config", same))
	require.Empty(t, ask(t, r, "policy", "diff", "--config", same, "--json"))

	ask(t, r, "policy", "set", "acme-*", "--rate", "21/s", "--no-ramp")
	ask(t, r, "policy", "set", "by-hand"+escape, "--rate", "1/m")
	file := configFile(t, fullPolicies+"- {key: new, rate: 2/s}\n")
	code, out, stderr := try(t, r, "policy", "diff", "--config", file)
	require.Equal(t, exitFailed, code)
	require.Empty(t, stderr)
	require.Equal(t, text(
		`KEY               FIELD   FILE                                  STORED                                SOURCE`,
		`acme-*            rate    20/s                                  21/s                                  live`,
		`acme-*            ramp    10% 5m                                -                                     live`,
		`"by-hand\x1b[2J"  policy  -                                     rate 1/m, burst 1, max_in_flight 100  live`,
		`new               policy  rate 2/s, burst 1, max_in_flight 100  -                                     -`,
	), out)
	code, out, _ = try(t, r, "policy", "diff", "--config", file, "--json")
	require.Equal(t, exitFailed, code)
	require.Equal(t, text(
		`{"key":"acme-*","field":"rate","file":"20/s","stored":"21/s","source":"live"}`,
		`{"key":"acme-*","field":"ramp","file":"10% 5m","stored":"","source":"live"}`,
		`{"key":"by-hand\u001b[2J","field":"policy","file":"","stored":"rate 1/m, burst 1, max_in_flight 100","source":"live"}`,
		`{"key":"new","field":"policy","file":"rate 2/s, burst 1, max_in_flight 100","stored":""}`,
	), out)

	ask(t, r, "policy", "set", "acme", "--burst", "1") // a parent that is not in the next file
	load(t, r, "policies: []\n")
	code, out, _ = try(t, r, "policy", "diff", "--config", configFile(t, "policies: [{key: acme-*, rate: 21/s}]\n"), "--json")
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, `{"key":"acme-*","field":"parent","file":"","stored":"acme","source":"live"}`)
}

// The ways to write the same policy do not differ.
func TestDifferencesOfForm(t *testing.T) {
	r := throttletest.StartRedis(t)
	load(t, r, "policies:\n- {key: up, rate: 1/24h}\n- {key: k, rate: 60/1m, parent: up, ageing: 60s, max_waiting: 9, quotas: [{limit: 1, per: 60m}, {limit: 1, per: 24h, window: fixed, zone: UTC}], hours: {open: ['fri,mon-thu 09:00-10:00']}}\n")
	require.Empty(t, ask(t, r, "policy", "diff", "--config", configFile(t,
		"policies:\n- {key: k, rate: 60/m, parent: up, ordered: false, max_waiting: 9, overflow: refuse, weight: 1, max_in_flight: 100, quotas: [{limit: 1, per: 1h, window: sliding}, {limit: 1, per: 24h, window: fixed}], hours: {zone: UTC, open: ['mon-fri 09:00-10:00']}}\n- {key: up, rate: 1/d}\n")))
}

// diff asks the Redis that the file names, unless it is told another.
func TestPolicyDiffUsesTheRedisOfTheFile(t *testing.T) {
	r := throttletest.StartRedis(t)
	file := configFile(t, "redis: "+r.URL()+"\npolicies: []\n")
	s := begin(nil, "policy", "diff", "--config", file)
	require.Zero(t, s.exit(t, patience), "%s", &s.stderr)
	s = begin(map[string]string{"WEIR_CONFIG": configFile(t, "redis: redis://127.0.0.1:1\npolicies: []\n")}, "policy", "diff")
	require.Equal(t, exitRedis, s.exit(t, patience))
	require.Contains(t, s.stderr.String(), "throttled.yaml:1:8: cannot use redis://127.0.0.1:1")
	require.Zero(t, run(context.Background(), []string{"policy", "diff", "--redis", r.URL(), "--config", file}, os.Getenv, &s.stdout, &s.stderr, nil))
}

func TestPoliciesOfListening(t *testing.T) {
	r := throttletest.StartRedis(t)
	const begin = "crm (live): rate 5/s, burst 1, max_in_flight 100"
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--rate", "5/s", "--listen", "adapt", "--floor", "1/m"}, ", listen adapt, floor 1/m"},
		{[]string{"--no-floor"}, ", listen adapt"},
		{[]string{"--floor", "2/s"}, ", listen adapt, floor 2/s"},
		{[]string{"--listen", "off"}, ", listen off"},
		{[]string{"--listen", "obey", "--circuit-failures", "5"}, ", circuit 5 failures, rest 30s"},
		{[]string{"--circuit-ratio", "50%", "--circuit-rest", "1m", "--circuit-disable", "24h"}, ", circuit 5 failures or 50%, rest 1m, disable 24h"},
		{[]string{"--circuit-failures", "0"}, ", circuit 50%, rest 1m, disable 24h"},
		{[]string{"--no-circuit", "--events"}, ", events true"},
		{[]string{"--events=false"}, ""},
	} {
		require.Equal(t, begin+step.want+"\n", ask(t, r, append([]string{"policy", "set", "crm"}, step.args...)...))
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--listen", "never"}, `--listen "never" is not allowed: want off, obey or adapt`},
		{[]string{"--floor", "1/s"}, "floor"},
		{[]string{"--listen", "adapt", "--floor", "6/s"}, "floor"},
		{[]string{"--circuit-rest", "1s"}, "failures"},
		{[]string{"--circuit-ratio", "100%"}, `--circuit-ratio "100%" is not allowed`},
		{[]string{"--circuit-failures", "1", "--no-circuit"}, "exclude each other"},
	} {
		code, _, stderr := try(t, r, append([]string{"policy", "set", "crm"}, c.args...)...)
		require.NotZero(t, code, "%v", c.args)
		require.Contains(t, stderr, c.want, "%v", c.args)
	}
}
