package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A result is what a run of the command came to.
type result struct {
	code     int
	out, err string
}

// command runs the command the way a shell would.
func command(ctx context.Context, stdin string, args ...string) result {
	var out, err bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &err)
	return result{code, out.String(), err.String()}
}

func TestHelp(t *testing.T) {
	r := command(t.Context(), "", "--help")
	require.Zero(t, r.code)
	require.Empty(t, r.err)
	for _, part := range []string{
		"Exit codes:", "130  interrupted", "Examples:", "--redis URL", "--batch JOBS", "enqueue --file FILE [flags]\n", "cannot go with --file",
		"--priority N", "--not-before TIME", "--ttl DURATION", "--deadline TIME", "--dedupe NAME", "--dedupe-content ", "--dedupe-window DURATION",
		"--while-waiting ", "--replace ", "--max-attempts N", "counts from the enqueue", "--debounce DURATION", "--max-debounce DURATION", "what a key drops", "no room for the job",
	} {
		require.Contains(t, r.out, part)
	}
	t.Setenv(redisEnv, "redis://user:SECRET@127.0.0.1:1")
	require.Equal(t, r, command(t.Context(), "", "--help"), "the environment is not shown")
}

func TestWrongUsage(t *testing.T) {
	const secret = "S3CRET"
	big := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(big, make([]byte, 1<<20+1), 0o600))
	job := func(more ...string) []string {
		return append([]string{"--key", "k", "--url", "http://example.com/" + secret}, more...)
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "nothing to enqueue: give --key and --url for one job, or --file for many"},
		{"argument", job("stray", secret), "argument without a flag; if it is part of a value with spaces, quote the value"},
		{"unknown flag", job("--nope"), "unknown flag: --nope"},
		{"no key", []string{"--url", "http://a"}, "--key is missing"},
		{"no URL", []string{"--key", "k"}, "--url is missing"},
		{"empty key", []string{"--key", "", "--url", "http://a"}, "--key is empty"},
		{"empty id", job("--id", ""), "--id is empty"},
		{"empty file name", []string{"--file", ""}, "--file is empty"},
		{"long key", []string{"--key", strings.Repeat("k", 513), "--url", "http://a"}, "--key 513 is not allowed: want at most 512 bytes"},
		{"key that is not UTF-8", []string{"--key", "\xff", "--url", "http://a"}, "valid UTF-8"},
		{"bad URL", []string{"--key", "k", "--url", "/" + secret}, "--url without http:// or https:// in front"},
		{"bad id", job("--id", "a b"), `--id "a b" is not allowed`},
		{"bad method", job("--method", "A B"), `--method "A B" is not allowed`},
		{"header without colon", job("--header", "Bearer "+secret), "--header number 1 has no colon: want 'Name: value'"},
		{"header name", job("--header", "Bad Name: "+secret), `--header "Bad Name" is not allowed`},
		{"header value", job("--header", "X-A: a\r\n"+secret), `--header "X-A"`},
		{"header twice", job("--header", "X-A: 1", "--header", "x-a: 2"), `--header "X-A" is given twice`},
		{"cost 0", job("--cost", "0"), "--cost 0 is not allowed: want a whole number from 1 to 1000000000"},
		{"cost -1", job("--cost", "-1"), "--cost -1 is not allowed"},
		{"cost too high", job("--cost", "1000000001"), "--cost 1000000001 is not allowed"},
		{"negative delay", job("--delay", "-1s"), "--delay -1s is not allowed"},
		{"delay without unit", job("--delay", "5"), `--delay "5" is not allowed: want a duration such as 1.5s`},
		{"delay in words", job("--delay", "soon"), `--delay "soon" is not allowed: want a duration such as 1.5s`},
		{"cost in words", job("--cost", "two"), `--cost "two" is not allowed: want a whole number`},
		{"json in words", job("--json=maybe"), `--json "maybe" is not allowed: want true or false`},
		{"delay beyond 2262", job("--delay", "2562000h"), "--delay "},
		{"delay and instant", job("--delay", "1s", "--not-before", "2026-12-01T06:00:00Z"), "--delay and --not-before exclude each other: give one of them"},
		{"instant in words", job("--not-before", "tomorrow"), `--not-before "tomorrow" is not allowed: want a time in RFC 3339`},
		{"empty instant", job("--not-before", ""), `--not-before "" is not allowed`},
		{"instant beyond 2261", job("--not-before", "2262-01-01T00:00:00Z"), `--not-before "2262-01-01T00:00:00Z" is not allowed: want a time up to the year 2261`},
		{"priority 10", job("--priority", "10"), "--priority 10 is not allowed: want 0 to 9"},
		{"priority -1", job("--priority", "-1"), "--priority -1 is not allowed: want 0 to 9"},
		{"priority in words", job("--priority", "high"), `--priority "high" is not allowed: want a whole number`},
		{"ttl too short", job("--ttl", "1us"), "--ttl 1µs is not allowed: want 1ms to 87600h0m0s"},
		{"negative ttl", job("--ttl", "-1s"), "--ttl -1s is not allowed"},
		{"ttl beyond ten years", job("--ttl", "87601h"), "--ttl 87601h0m0s is not allowed"},
		{"ttl of the delay", job("--ttl", "1m", "--delay", "1m"), "--ttl 1m0s is not allowed: want more than --delay 1m0s: both count from the enqueue"},
		{"ttl of the debounce", job("--ttl", "1m", "--dedupe", "a", "--debounce", "1h"), "--ttl 1m0s is not allowed: want more than dedupe.debounce, 1h0m0s"},
		{"deadline before the delay is over", job("--not-before", "2026-12-01T06:00:00Z", "--deadline", "2026-12-01T05:00:00Z"),
			`--deadline "2026-12-01T05:00:00Z" is not allowed: want none before not_before, 2026-12-01T06:00:00Z`},
		{"no attempts", job("--max-attempts", "0"), "--max-attempts 0 is not allowed: want a whole number from 1"},
		{"attempts in words", job("--max-attempts", "few"), `--max-attempts "few" is not allowed: want a whole number`},
		{"deadline in words", job("--deadline", "noon"), `--deadline "noon" is not allowed: want a time in RFC 3339`},
		{"deadline beyond 2261", job("--deadline", "9999-12-31T23:59:59Z"), `--deadline "9999-12-31T23:59:59Z" is not allowed: want a time in the years 1970 to 2261`},
		{"deadline before 1970", job("--deadline", "1969-01-01T00:00:00Z"), "--deadline "},
		{"dedupe with a space", job("--dedupe", "a b"), `--dedupe "a b" is not allowed: want 1 to 128 printable ASCII bytes`},
		{"empty dedupe", job("--dedupe", ""), "--dedupe is empty"},
		{"dedupe by name and content", job("--dedupe", "a", "--dedupe-content"), "--dedupe and --dedupe-content exclude each other"},
		{"window of what waits", job("--dedupe", "a", "--dedupe-window", "1m", "--while-waiting"), "--dedupe-window 1m0s is not allowed: want none for a name"},
		{"window too short", job("--dedupe", "a", "--dedupe-window", "1us"), "--dedupe-window 1µs is not allowed"},
		{"debounce and replace", job("--dedupe", "a", "--debounce", "1s", "--replace"), "--replace true is not allowed: want false with debounce"},
		{"negative debounce", job("--dedupe", "a", "--debounce", "-1s"), "--debounce -1s is not allowed"},
		{"most of no debounce", job("--dedupe", "a", "--max-debounce", "1s"), "--max-debounce needs --debounce beside it"},
		{"most below the debounce", job("--dedupe", "a", "--debounce", "5s", "--max-debounce", "1s"), "--max-debounce 1s is not allowed: want at least debounce"},
		{"newer ones of nothing", job("--replace"), "a new id is no other job's: give --id, --dedupe or --dedupe-content"},
		{"priority of a file", []string{"--file", "-", "--priority", "10"}, "--priority 10 is not allowed"},
		{"negative timeout", job("--timeout", "-1s"), "--timeout -1s is not allowed"},
		{"rate 0", job("--rate", "0/s"), `--rate "0/s" is not allowed`},
		{"rate NaN", job("--rate", "NaN/s"), `--rate "NaN/s" is not allowed`},
		{"empty rate", job("--rate", ""), "--rate is empty"},
		{"burst 0", job("--rate", "1/s", "--burst", "0"), "--burst 0 is not allowed"},
		{"burst alone", job("--burst", "5"), "--burst needs --rate"},
		{"batch 0", []string{"--file", "-", "--batch", "0"}, "--batch 0 is not allowed: want a whole number from 1 to 10000"},
		{"batch too high", []string{"--file", "-", "--batch", "10001"}, "--batch 10001 is not allowed"},
		{"batch without file", job("--batch", "5"), "--batch needs --file"},
		{"two bodies", job("--data", "x", "--data-file", "-"), "--data and --data-file exclude each other: give one of them"},
		{"file and id", []string{"--file", "-", "--id", "x"}, "--file and --id exclude each other"},
		{"file and data", []string{"--file", "-", "--data", "x"}, "--file and --data exclude each other"},
		{"missing file", []string{"--file", "no-such-file"}, "no-such-file"},
		{"missing data file", job("--data-file", "no-such-file"), "no-such-file"},
		{"data file over the bound", job("--data-file", big), "want at most 1048576 bytes"},
		{"data over the bound", job("--data", strings.Repeat("x", 1<<20+1)), "--data of 1048577 bytes is not allowed: want at most 1048576 bytes"},
		{"default URL of a file", []string{"--file", "-", "--url", "ftp://" + secret}, "--url without http://"},
		{"Redis URL", job("--redis", "http://u:"+secret+"@h"), "--redis is not a Redis URL: want a URL that starts with redis://"},
		{"Redis URL of a file", []string{"--file", "-", "--redis", secret}, "--redis is not a Redis URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := command(t.Context(), "", c.args...)
			require.Equal(t, exitInvalid, r.code)
			require.Empty(t, r.out)
			require.Contains(t, r.err, "enqueue: ")
			require.Contains(t, r.err, c.want)
			require.NotContains(t, r.err, secret)
		})
	}
}

func TestRedisAway(t *testing.T) {
	t.Setenv(redisEnv, "redis://:S3CRET@127.0.0.1:1/0?dial_timeout=1s&max_retries=-1")
	for name, args := range map[string][]string{
		"one": {"--key", "k", "--url", "http://a"}, "many": {"--file", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			r := command(t.Context(), "{}\n", args...)
			require.Equal(t, exitRedis, r.code)
			require.Empty(t, r.out)
			require.Contains(t, r.err, "nothing was enqueued: start one, or set --redis or WEIR_REDIS")
			require.NotContains(t, r.err, "S3CRET")
		})
	}
}

func TestInterruptedWhileConnecting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := command(ctx, "", "--key", "k", "--url", "http://a", "--redis", "redis://127.0.0.1:1")
	require.Equal(t, exitInterrupted, r.code)
	require.Contains(t, r.err, "nothing was enqueued")
}
