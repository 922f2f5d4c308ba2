package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
)

func TestWholeFile(t *testing.T) {
	c, err := Read("throttled.yaml", []byte(`
redis: rediss://u:p@redis.example.com/3
shards: 4
policies:
  - key: "*"
    rate: 10/s
    burst: 5
    max_in_flight: 7
  - {key: 'tenant {7}: é', rate: 1/24h}
max_waiting: 7
dead_letters: {max: 8, age: 90m}
worker:
  concurrency: 20
  shutdown_timeout: 2s
  timeout: 1m30s
  lease: 1s
  pools: {mail: 3, slow: 1}
  retry:
    base: 10ms
    cap: 20ms
    max_attempts: 3
http:
  listen: ":0"
  proxy: http://u:p@proxy.example.com:3128
  allow_networks: [127.0.0.0/8, "::1", 10.1.2.3]
`))
	require.NoError(t, err)
	require.Equal(t, "throttled.yaml:2:8", c.Origin("redis"))
	require.Equal(t, "throttled.yaml:13:16", c.Origin("worker.concurrency"))
	c.origins = nil
	most := int64(7)
	require.Equal(t, Config{
		MaxWaiting:  &most,
		DeadLetters: throttle.Retention{Max: 8, Age: 90 * time.Minute},
		Redis:       "rediss://u:p@redis.example.com/3",
		Shards:      4,
		Policies: []throttle.Policy{
			{Key: "*", Limit: throttle.Limit{Rate: 10, Period: time.Second, Burst: 5}, MaxInFlight: 7},
			{Key: "tenant {7}: é", Limit: throttle.Limit{Rate: 1, Period: 24 * time.Hour, Burst: 1}, MaxInFlight: 100},
		},
		Worker: Worker{
			Concurrency: 20, ShutdownTimeout: 2 * time.Second, Timeout: 90 * time.Second, Lease: time.Second,
			Pools: map[string]int{"mail": 3, "slow": 1},
			Retry: worker.RetryPolicy{Base: 10 * time.Millisecond, Cap: 20 * time.Millisecond, MaxAttempts: 3},
		},
		HTTP: HTTP{
			Listen: ":0", Proxy: "http://u:p@proxy.example.com:3128", AllowNetworks: []netip.Prefix{
				netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.1.2.3/32"),
			},
		},
	}, c)
}

func TestDefaults(t *testing.T) {
	for name, file := range map[string]string{
		"empty":              "",
		"comment":            "# nothing\n",
		"document mark":      "---\n# nothing\n",
		"directive":          "%YAML 1.2\n---\n",
		"byte order mark":    "\ufeff# nothing\n",
		"sections left open": "redis:\npolicies:\nworker:\n  retry:\n  pools:\nhttp: {}\n",
		"windows line ends":  "redis:\r\nworker:\r\n  lease: 30s\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Read("f", []byte(file))
			require.NoError(t, err)
			require.Nil(t, c.Policies, "the stored ones stay")
			c.origins = Default().origins
			require.Equal(t, Default(), c)
		})
	}
}

func TestEmptyPoliciesAreNotNone(t *testing.T) {
	c, err := Read("f", []byte("policies: []"))
	require.NoError(t, err)
	require.NotNil(t, c.Policies)
	require.Empty(t, c.Policies)
}

func TestNoBoundIsNotNone(t *testing.T) {
	c, err := Read("f", []byte("max_waiting: 0"))
	require.NoError(t, err)
	require.NotNil(t, c.MaxWaiting)
	require.Zero(t, *c.MaxWaiting)
	require.Equal(t, "f:1:14", c.Origin("max_waiting"))
	c, err = Read("f", []byte("max_waiting:"))
	require.NoError(t, err)
	require.Nil(t, c.MaxWaiting, "the stored one stays")
}

func TestRetryCapFollowsALargeBase(t *testing.T) {
	c, err := Read("f", []byte("worker: {retry: {base: 1h}}"))
	require.NoError(t, err)
	require.Equal(t, time.Hour, c.Worker.Retry.Cap)
}

func TestListenNowhere(t *testing.T) {
	for _, file := range []string{`http: {listen: ""}`, `http: {listen: none}`} {
		c, err := Read("f", []byte(file))
		require.NoError(t, err)
		require.Empty(t, c.HTTP.Listen)
	}
}

const (
	wantRate    = "want N/s, N/m, N/h, N/d or N/DURATION, such as 100/s or 1/24h, with N a whole number from 1 to 1000000000 and DURATION from 1ms to 8784h"
	wantBurst   = "want a whole number from 1 to 1000000000"
	wantKey     = `want text of 1 to 512 bytes: an exact key, a pattern with one * for any text, or "*" for all keys without a policy of their own`
	policyNames = "key, rate, burst, max_in_flight, quotas, parent, weight, minimum, hours, ramp, " +
		"ordered, ageing, job_ttl, max_waiting, overflow, history, keep_done, events, listen, floor, circuit"
	wantDay = "want a duration with its unit, such as 10s or 1m30s, from 1ms to 24h"
)

func TestProblems(t *testing.T) {
	policy := func(more string) string { return "policies:\n  - key: a\n    " + more + "\n" }
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"rate 0", policy("rate: 0/s"), []string{`f:3:11: policies[0].rate "0/s" is not allowed: ` + wantRate}},
		{"rate negative", policy("rate: -1/s"), []string{`f:3:11: policies[0].rate "-1/s" is not allowed: ` + wantRate}},
		{"rate a number", policy("rate: 10"), []string{`f:3:11: policies[0].rate 10 is not allowed: ` + wantRate}},
		{"rate a fraction", policy("rate: 0.5/s"), []string{`f:3:11: policies[0].rate "0.5/s" is not allowed: ` + wantRate}},
		{"rate nan", policy("rate: .nan"), []string{`f:3:11: policies[0].rate .nan is not allowed: ` + wantRate}},
		{"rate NaN/s", policy("rate: NaN/s"), []string{`f:3:11: policies[0].rate "NaN/s" is not allowed: ` + wantRate}},
		{"rate inf", policy("rate: -.inf"), []string{`f:3:11: policies[0].rate -.inf is not allowed: ` + wantRate}},
		{"rate without period", policy("rate: 10/"), []string{`f:3:11: policies[0].rate "10/" is not allowed: ` + wantRate}},
		{"rate of period 0", policy("rate: 10/0s"), []string{`f:3:11: policies[0].rate "10/0s" is not allowed: ` + wantRate}},
		{"rate too high", policy("rate: 1000000001/s"), []string{`f:3:11: policies[0].rate "1000000001/s" is not allowed: ` + wantRate}},
		{"rate a list", policy("rate: [10/s]"), []string{`f:3:11: policies[0].rate […] is not allowed: ` + wantRate}},
		{"rate left empty", policy("rate:"), []string{`f:2:5: policies[0].rate is missing: ` + wantRate}},
		{"burst 0", policy("rate: 1/s\n    burst: 0"), []string{`f:4:12: policies[0].burst 0 is not allowed: ` + wantBurst}},
		{"burst negative", policy("rate: 1/s\n    burst: -1"), []string{`f:4:12: policies[0].burst -1 is not allowed: ` + wantBurst}},
		{"burst nan", policy("rate: 1/s\n    burst: .nan"), []string{`f:4:12: policies[0].burst .nan is not allowed: ` + wantBurst}},
		{"burst inf", policy("rate: 1/s\n    burst: .inf"), []string{`f:4:12: policies[0].burst .inf is not allowed: ` + wantBurst}},
		{"burst a fraction", policy("rate: 1/s\n    burst: 1.5"), []string{`f:4:12: policies[0].burst 1.5 is not allowed: ` + wantBurst}},
		{"burst text", policy("rate: 1/s\n    burst: \"5\""), []string{`f:4:12: policies[0].burst "5" is not allowed: ` + wantBurst}},
		{"burst octal", policy("rate: 1/s\n    burst: 010"), []string{`f:4:12: policies[0].burst 010 is not allowed: ` + wantBurst}},
		{"burst too high", policy("rate: 1/s\n    burst: 1000000001"), []string{`f:4:12: policies[0].burst 1000000001 is not allowed: ` + wantBurst}},
		{"burst beyond 64 bits", policy("rate: 1/s\n    burst: 18446744073709551617"), []string{`f:4:12: policies[0].burst "18446744073709551617" is not allowed: ` + wantBurst}},
		{"max in flight 0", policy("rate: 1/s\n    max_in_flight: 0"), []string{"f:4:20: policies[0].max_in_flight 0 is not allowed: want a whole number from 1 to 1000000"}},
		{"key missing", "policies:\n  - rate: 1/s\n", []string{`f:2:5: policies[0].key is missing: ` + wantKey}},
		{"key empty", "policies: [{key: '', rate: 1/s}]", []string{`f:1:18: policies[0].key "" is not allowed: ` + wantKey}},
		{"key a number", "policies: [{key: 12, rate: 1/s}]", []string{`f:1:18: policies[0].key 12 is not allowed: ` + wantKey}},
		{"key of two patterns", "policies: [{key: 'a-*-*', rate: 1/s}]", []string{`f:1:18: policies[0].key "a-*-*" is not allowed: ` + wantKey}},
		{
			"key too long", "policies: [{key: " + strings.Repeat("k", 513) + ", rate: 1/s}]",
			[]string{`f:1:18: policies[0].key "` + strings.Repeat("k", 80) + `…" is not allowed: ` + wantKey},
		},
		{
			"same key twice", "policies:\n- {key: a, rate: 1/s}\n- {key: b, rate: 1/s}\n- {key: 'a', rate: 2/s}\n",
			[]string{`f:4:9: policies[2].key "a" is not allowed: want one policy a key, and line 2 has one`},
		},
		{
			"fields of a later version",
			"policies:\n  - key: billing\n    rate: 20/s\n    adaptive: {}\nhttp:\n  tls_roots: []\n",
			[]string{
				"f:4:5: policies[0].adaptive is not a known field: want " + policyNames,
				"f:6:3: http.tls_roots is not a known field: want allow_networks, failure_callback, listen, proxy",
			},
		},
		{"max waiting negative", "max_waiting: -1", []string{"f:1:14: max_waiting -1 is not allowed: want a whole number from 1 to 1000000000, or 0 for no bound"}},
		{"max waiting too high", "max_waiting: 1000000001", []string{"f:1:14: max_waiting 1000000001 is not allowed: want a whole number from 1 to 1000000000, or 0 for no bound"}},
		{"max waiting none", "max_waiting: none", []string{`f:1:14: max_waiting "none" is not allowed: want a whole number from 1 to 1000000000, or 0 for no bound`}},
		{"no dead letters", "dead_letters: {max: 0}", []string{"f:1:21: dead_letters.max 0 is not allowed: want a whole number from 1 to 100000000"}},
		{"dead letters too short", "dead_letters: {age: 59s}", []string{`f:1:21: dead_letters.age "59s" is not allowed: want a duration with its unit, such as 10s or 1m30s, from 1m to 87600h`}},
		{"dead letters without unit", "dead_letters: {age: 720}", []string{"f:1:21: dead_letters.age 720 is not allowed: want a duration with its unit, such as 10s or 1m30s, from 1m to 87600h"}},
		{"dead letters unknown", "dead_letters: {most: 1}", []string{"f:1:16: dead_letters.most is not a known field: want age, max"}},
		{"unknown section", "shards: 1\nlimits: {}\n", []string{"f:2:1: limits is not a known field: want dead_letters, http, max_waiting, policies, redis, shards, worker"}},
		{"unknown in worker", "worker:\n  shutdown: 1s\n", []string{"f:2:3: worker.shutdown is not a known field: want concurrency, lease, pools, retry, shutdown_timeout, timeout"}},
		{"unknown without value", "worker:\n  nope:\n", []string{"f:2:3: worker.nope is not a known field: want concurrency, lease, pools, retry, shutdown_timeout, timeout"}},
		{"name not a text", "1: x\n", []string{"f:1:1: 1 is not a known field: want dead_letters, http, max_waiting, policies, redis, shards, worker"}},
		{"merge key", "worker:\n  <<: {lease: 1s}\n", []string{"f:2:3: worker.<< is not a known field: want concurrency, lease, pools, retry, shutdown_timeout, timeout"}},
		{"alias", "shards: &n 4\nworker: {concurrency: *n}\n", []string{
			"f:1:9: shards (a YAML anchor) is not allowed: want a whole number from 1 to 100, or 0 for the one that is stored",
			"f:2:23: worker.concurrency (a YAML alias) is not allowed: want a whole number from 1 to 100000",
		}},
		{"tag", "shards: !!int \"4\"\n", []string{"f:1:9: shards (a YAML tag) is not allowed: want a whole number from 1 to 100, or 0 for the one that is stored"}},
		{"shards below 0", "shards: -1", []string{"f:1:9: shards -1 is not allowed: want a whole number from 1 to 100, or 0 for the one that is stored"}},
		{"shards a truth", "shards: true", []string{"f:1:9: shards true is not allowed: want a whole number from 1 to 100, or 0 for the one that is stored"}},
		{"field twice", "shards: 1\nworker: {}\nshards: 2\n", []string{"f:3:1: shards is given twice: want it once, as on line 1"}},
		{"policies a mapping", "policies:\n  a: {rate: 1/s}\n", []string{"f:2:3: policies {…} is not allowed: want a list of policies"}},
		{"policy a text", "policies:\n  - a\n", []string{`f:2:5: policies[0] "a" is not allowed: want a mapping of ` + policyNames}},
		{"worker a list", "worker:\n  - lease: 1s\n", []string{"f:2:3: worker […] is not allowed: want a mapping of concurrency, lease, pools, retry, shutdown_timeout, timeout"}},
		{"file a text", "redis://127.0.0.1", []string{`f:1:1: "redis://127.0.0.1" is not allowed: want a mapping of dead_letters, http, max_waiting, policies, redis, shards, worker`}},
		{"duration without unit", "worker: {timeout: 10}", []string{"f:1:19: worker.timeout 10 is not allowed: " + wantDay}},
		{"duration 0", "worker: {shutdown_timeout: 0s}", []string{`f:1:28: worker.shutdown_timeout "0s" is not allowed: ` + wantDay}},
		{"duration negative", "worker: {timeout: -1s}", []string{`f:1:19: worker.timeout "-1s" is not allowed: ` + wantDay}},
		{"duration no duration", "worker: {timeout: soon}", []string{`f:1:19: worker.timeout "soon" is not allowed: ` + wantDay}},
		{"duration too long", "worker: {timeout: 25h}", []string{`f:1:19: worker.timeout "25h" is not allowed: ` + wantDay}},
		{"lease too short", "worker: {lease: 999ms}", []string{`f:1:17: worker.lease "999ms" is not allowed: want a duration with its unit, such as 10s or 1m30s, from 1s to 24h`}},
		{"concurrency 0", "worker: {concurrency: 0}", []string{"f:1:23: worker.concurrency 0 is not allowed: want a whole number from 1 to 100000"}},
		{"delays of words", "worker: {retry: {delays: '1s,soon'}}", []string{`f:1:26: worker.retry.delays "1s,soon" is not allowed: want durations from 1ms to 8784h with commas between them, such as 5s,5m,30m,2h, or standard`}},
		{"attempts 0", "worker: {retry: {max_attempts: 0}}", []string{"f:1:32: worker.retry.max_attempts 0 is not allowed: want a whole number from 1 to 1000000"}},
		{"cap below base", "worker:\n  retry:\n    cap: 1s\n    base: 2s\n", []string{"f:3:10: worker.retry.cap 1s is not allowed: want at least worker.retry.base, 2s"}},
		{"cap below the default base", "worker:\n  retry:\n    cap: 1ms\n", []string{"f:3:10: worker.retry.cap 1ms is not allowed: want at least worker.retry.base, 1s"}},
		{"pools empty", "worker: {pools: {}}", []string{"f:1:17: worker.pools is empty: want at least one pool with its priority"}},
		{"pool without priority", "worker: {pools: {a: }}", []string{"f:1:17: worker.pools is empty: want at least one pool with its priority"}},
		{"pool of priority 0", "worker: {pools: {a: 0}}", []string{"f:1:21: worker.pools.a 0 is not allowed: want a whole number from 1 to 100"}},
		{"pool with a space", "worker: {pools: {'a b': 1}}", []string{`f:1:25: worker.pools name "a b" is not allowed: want 1 to 128 printable ASCII bytes without spaces`}},
		{"pool not a text", "worker: {pools: {1: 1}}", []string{"f:1:18: worker.pools.1 is not allowed: want a name that is text, in quotes if YAML takes it for something else"}},
		{"pools a list", "worker: {pools: [a]}", []string{"f:1:17: worker.pools […] is not allowed: want a mapping"}},
		{"listen without port", "http: {listen: localhost}", []string{`f:1:16: http.listen "localhost" is not allowed: want host:port or :port with a port from 0 to 65535, such as 127.0.0.1:8080, or "none"`}},
		{"listen on a port that is none", "http: {listen: 'a:65536'}", []string{`f:1:16: http.listen "a:65536" is not allowed: want host:port or :port with a port from 0 to 65535, such as 127.0.0.1:8080, or "none"`}},
		{"redis not a text", "redis: {url: S3CRET}", []string{"f:1:8: redis is not allowed: want text"}},
		{"two documents", "shards: 1\n---\nshards: 2\n", []string{"f:3:1: there is a second YAML document: want one"}},
		{"bracket left open", "worker: {pools: [a\n", []string{"f:1:17: the file is not YAML here: sequence end token ']' not found"}},
		{"tab", "worker:\n\tlease: 1s\n", []string{"f:2:1: the file is not YAML here: found character '\t' that cannot start any token"}},
		{"deep brackets", strings.Repeat("[", 100_000), []string{"f:1:51: brackets are nested more than 50 deep"}},
		{"not UTF-8", "shards: 1\nredis: é\xff\n", []string{"f:2:9: the file is not valid UTF-8 here"}},
		{"too long", "#" + strings.Repeat("x", MaxFileSize), []string{"f:1:1: the file is too long: want at most 1048576 bytes"}},
		{
			"all at once", "shards: x\nnope: 1\nworker:\n  lease: 1\n  retry: {base: 5s, cap: 1s}\npolicies:\n- key: a\n  rate: 1/s\n  burst: 0\n- rate: x\n",
			[]string{
				`f:1:9: shards "x" is not allowed: want a whole number from 1 to 100, or 0 for the one that is stored`,
				"f:2:1: nope is not a known field: want dead_letters, http, max_waiting, policies, redis, shards, worker",
				"f:4:10: worker.lease 1 is not allowed: want a duration with its unit, such as 10s or 1m30s, from 1s to 24h",
				"f:5:26: worker.retry.cap 1s is not allowed: want at least worker.retry.base, 5s",
				"f:9:10: policies[0].burst 0 is not allowed: " + wantBurst,
				"f:10:3: policies[1].key is missing: " + wantKey,
				`f:10:9: policies[1].rate "x" is not allowed: ` + wantRate,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("f", []byte(c.file))
			require.EqualError(t, err, strings.Join(c.want, "\n"))
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Len(t, e.Problems, len(c.want))
		})
	}
}

func TestLoad(t *testing.T) {
	name := filepath.Join(t.TempDir(), "throttled.yaml")
	_, err := Load(name)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "config file: open "+name)
	require.NoError(t, os.WriteFile(name, []byte("shards: 101"), 0o600))
	_, err = Load(name)
	require.ErrorContains(t, err, name+":1:9: shards 101")
}

func TestSet(t *testing.T) {
	c := Default()
	require.NoError(t, c.Set("worker.concurrency", "7", "--concurrency"))
	require.Equal(t, 7, c.Worker.Concurrency)
	require.Equal(t, "--concurrency", c.Origin("worker.concurrency"))
	require.Empty(t, c.Origin("shards"))
	require.EqualError(t, c.Set("worker.concurrency", "x", "WEIR_CONCURRENCY"),
		`WEIR_CONCURRENCY "x" is not allowed: want a whole number from 1 to 100000`)
	require.Equal(t, 7, c.Worker.Concurrency)
	require.ErrorContains(t, c.Set("policies", "x", "--policies"), "not a field with one value")
}
