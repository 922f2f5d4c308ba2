package main

import (
	"os"
	"os/user"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// escape begins the sequences that move a terminal's cursor; c1 is the same in one
// character, and rtl turns the direction of what follows.
const (
	escape = "\x1b[2J"
	c1     = "\u009b2J"
	rtl    = "\u202e"
)

// ask runs a command that succeeds and returns what it prints.
func ask(t *testing.T, r *throttletest.Redis, args ...string) string {
	t.Helper()
	code, out, stderr := try(t, r, args...)
	require.Zero(t, code, "%s", stderr)
	require.Empty(t, stderr)
	return out
}

func try(t *testing.T, r *throttletest.Redis, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	s := begin(map[string]string{"WEIR_REDIS": r.URL(), "USER": "tester"}, args...)
	code = s.exit(t, patience)
	return code, s.stdout.String(), s.stderr.String()
}

// text is lines, each with the line end.
func text(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func TestWrongRequests(t *testing.T) {
	long := strings.Repeat("k", 513)
	for _, c := range []struct {
		args []string
		want string
		help string // command that is pointed to
	}{
		{[]string{"policy", "lst"}, `unknown command "lst" for "throttled policy"`, "throttled policy"},
		{[]string{"policy", "list", "redis://:S3CRET@h"}, "there is an argument (not shown, it may hold a password) without a flag", "throttled policy list"},
		{[]string{"holds", "acme-*"}, `there is an argument "acme-*" without a flag; if it is part of a value with spaces, quote the value`, "throttled holds"},
		{[]string{"policy", "get"}, "KEY is missing", "throttled policy get"},
		{[]string{"policy", "get", "a", "b"}, "there are 2 arguments: want 1; put one with spaces or a * in quotes", "throttled policy get"},
		{[]string{"policy", "get", ""}, `KEY "" is not allowed: want 1 to 512 bytes`, ""},
		{[]string{"policy", "set"}, "NAME is missing", "throttled policy set"},
		{[]string{"policy", "set", "a"}, "there is nothing to set: give --rate or another flag", ""},
		{[]string{"policy", "set", "a*b*", "--rate", "1/s"}, `NAME "a*b*" is not allowed: want at most one *`, ""},
		{[]string{"policy", "set", "a", "--rate", "0/s"}, `--rate "0/s" is not allowed: want N/s`, ""},
		{[]string{"policy", "set", "a", "--rate", ""}, `--rate "" is not allowed: want N/s`, ""},
		{[]string{"policy", "set", "a", "--burst", "0"}, "--burst 0 is not allowed: want a whole number from 1 to 1000000000", ""},
		{[]string{"policy", "set", "a", "--burst", "two"}, `--burst "two" is not allowed: want a whole number`, "throttled policy set"},
		{[]string{"policy", "set", "a", "--max-in-flight", "1000001"}, "--max-in-flight 1000001 is not allowed: want a whole number from 1 to 1000000", ""},
		{[]string{"policy", "set", "a", "--weight", "1001"}, "--weight 1001 is not allowed: want a whole number from 1 to 1000", ""},
		{[]string{"policy", "set", "a", "--minimum", "x"}, `--minimum "x" is not allowed: want N/s`, ""},
		{[]string{"policy", "set", "a", "--parent", ""}, `--parent "" is not allowed: want 1 to 512 bytes`, ""},
		{[]string{"policy", "set", "a", "--quota", ""}, `--quota "" is not allowed: want 'LIMIT/PER [sliding|fixed] [ZONE]', such as '1000/h' or '9000/d fixed Europe/Berlin'`, ""},
		{[]string{"policy", "set", "a", "--quota", "10/h fixed UTC now"}, "is not allowed: want 'LIMIT/PER [sliding", ""},
		{[]string{"policy", "set", "a", "--quota", "ten/h"}, `--quota "ten/h" is not allowed: want 'LIMIT/PER [sliding|fixed] [ZONE]'`, ""},
		{[]string{"policy", "set", "a", "--quota", "5"}, `--quota "5" is not allowed: want 'LIMIT/PER [sliding|fixed] [ZONE]'`, ""},
		{[]string{"policy", "set", "a", "--quota", "50/x"}, "with LIMIT a whole number from 1 to 1000000000, and PER s, m, h, d or a duration from 1s to 8784h", ""},
		{[]string{"policy", "set", "a", "--quota", "10/h rolling"}, `--quota "10/h rolling": window "rolling" is not allowed: want sliding or fixed`, ""},
		{[]string{"policy", "set", "a", "--quota", "10/h fixed Europe/Berlin"}, `zone "Europe/Berlin" is not allowed: want none, unless the window is fixed and the period 24h`, ""},
		{[]string{"policy", "set", "a", "--quota", "10/100ms"}, `--quota "10/100ms": per 100ms is not allowed`, ""},
		{[]string{"policy", "set", "a", "--open", "9-18"}, `--open "9-18" is not allowed: want HH:MM-HH:MM`, ""},
		{[]string{"policy", "set", "a", "--open", "09:00-18:00", "--zone", "Mars"}, `--zone "Mars" is not allowed: want an IANA time zone`, ""},
		{[]string{"policy", "set", "a", "--ramp", "10%"}, `--ramp "10%" is not allowed: want a percentage above 0% and below 100% and a duration from 1s to 24h, such as '10% 5m'`, ""},
		{[]string{"policy", "set", "a", "--ramp", "0.1 5m"}, `--ramp "0.1 5m" is not allowed`, ""},
		{[]string{"policy", "set", "a", "--ramp", "10% 5"}, `--ramp "10% 5" is not allowed`, ""},
		{[]string{"policy", "set", "a", "--ramp", "10% 25h"}, `--ramp "10% 25h" is not allowed`, ""},
		{[]string{"policy", "set", "a", "--ordered=perhaps"}, `--ordered "perhaps" is not allowed: want true or false`, "throttled policy set"},
		{[]string{"policy", "set", "a", "--ageing", "25h"}, "--ageing 25h0m0s is not allowed: want whole microseconds from 1ms to 24h0m0s, or 0 for the default of 1m0s", ""},
		{[]string{"policy", "set", "a", "--ageing", "5"}, `--ageing "5" is not allowed: want a duration with its unit, such as 10m`, "throttled policy set"},
		{[]string{"policy", "set", "a", "--job-ttl", "-1h"}, "--job-ttl -1h0m0s is not allowed: want whole microseconds from 1ms to 87600h0m0s, or 0 for none", ""},
		{[]string{"policy", "set", "a", "--max-waiting", "-1"}, "--max-waiting -1 is not allowed: want 1 to 1000000000, or 0 for no bound", ""},
		{[]string{"policy", "set", "a", "--overflow", "drop"}, `--overflow "drop" is not allowed: want refuse, drop_oldest or drop_newest`, ""},
		{[]string{"policy", "set", "a", "--overflow", ""}, `--overflow "" is not allowed: want refuse, drop_oldest or drop_newest`, ""},
		{[]string{"policy", "set", "a", "--history", "1000001"}, "--history 1000001 is not allowed: want 1 to 1000000, or 0 for none", ""},
		{[]string{"policy", "set", "a", "--keep-done", "999ms"}, "--keep-done 999ms is not allowed: want whole microseconds from 1s to 720h0m0s, or 0 for none", ""},
		{[]string{"policy", "set", "a", "--quota", "1/h", "--no-quotas"}, "--quota and --no-quotas exclude each other: give one of them", ""},
		{[]string{"policy", "set", "a", "--weight", "2", "--no-parent"}, "--weight and --no-parent exclude each other", ""},
		{[]string{"policy", "set", "a", "--no-ramp=perhaps"}, `--no-ramp "perhaps" is not allowed: want true or false`, "throttled policy set"},
		{[]string{"policy", "set", "a", "--rate", "1/s", "--by", ""}, `--by "" is not allowed: want UTF-8 text of 1 to 128 bytes`, ""},
		{[]string{"policy", "set", "a", "--rate", "1/s", "--by", strings.Repeat("x", 129)}, "is not allowed: want UTF-8 text of 1 to 128 bytes", ""},
		{[]string{"policy", "remove", long}, "NAME 513 is not allowed: want at most 512 bytes", ""},
		{[]string{"policy", "diff"}, "--config is missing: give the file to compare", ""},
		{[]string{"policy", "diff", "--config", ""}, "--config is empty: give it the name of a file", ""},
		{[]string{"policy", "diff", "--config", "no-such-file"}, "config file: open no-such-file: no such file", ""},
		{[]string{"policy", "diff", "--config", configFile(t, "shards: x\n")}, `throttled.yaml:1:9: shards "x" is not allowed`, ""},
		{[]string{"policy", "diff", "--config", configFile(t, "shards: 1\n")}, "throttled.yaml has no policies: there is nothing to compare", ""},
		{[]string{"pause"}, "NAME... is missing", "throttled pause"},
		{[]string{"pause", "a", ""}, `NAME "" is not allowed`, ""},
		{[]string{"resume", "a**"}, `NAME "a**" is not allowed: want at most one *`, ""},
		{[]string{"drain", "\xff"}, `NAME "\xff" is not allowed: want valid UTF-8`, ""},
		{[]string{"cooldown", "a"}, "how long is missing: give either --for or --until", ""},
		{[]string{"cooldown", "a", "--for", "1m", "--until", "2030-01-01T00:00:00Z"}, "exclude each other: give one of them", ""},
		{[]string{"cooldown", "a", "--for", "0s"}, "--for 0s is not allowed: want a duration above 0 and up to 8784h", ""},
		{[]string{"cooldown", "a", "--for", "8785h"}, "--for 8785h0m0s is not allowed", ""},
		{[]string{"cooldown", "a", "--for", "10"}, `--for "10" is not allowed: want a duration with its unit, such as 10m`, "throttled cooldown"},
		{[]string{"cooldown", "a", "--until", "tomorrow"}, `--until "tomorrow" is not allowed: want a time in RFC 3339`, ""},
		{[]string{"purge", "a"}, "purge removes jobs for good: give --yes if that is wanted", ""},
		{[]string{"purge", "a", "b", "--yes"}, "there are 2 arguments: want 1", "throttled purge"},
		{[]string{"purge", "a", "--yes", "--state", "dead"}, `--state "dead" is not allowed: want waiting or delayed`, ""},
		{[]string{"purge", "a", "--yes", "--state", ""}, `--state "" is not allowed: want waiting or delayed`, ""},
		{[]string{"purge", "a", "--yes", "--type", ""}, "--type is empty: give it a value, or leave it out", ""},
		{[]string{"purge", "a", "--yes", "--id-prefix", ""}, "--id-prefix is empty", ""},
		{[]string{"purge", "a", "--yes", "--before", "yesterday"}, `--before "yesterday" is not allowed: want a time in RFC 3339, such as 2026-12-01T06:00:00Z, or a duration above 0, such as 24h`, ""},
		{[]string{"purge", "a", "--yes", "--before", "-1h"}, `--before "-1h" is not allowed`, ""},
		{[]string{"purge", "a", "--yes", "--before", ""}, `--before "" is not allowed`, ""},
		{[]string{"explain", long}, "KEY 513 is not allowed", ""},
		{[]string{"explain", "c*"}, `KEY "c*" is not allowed: want one exact key, not a pattern: throttled keys PATTERN lists those that match`, ""},
		{[]string{"explain", "c*", "id"}, `KEY "c*" is not allowed: want one exact key`, ""},
		{[]string{"verify", "c*"}, `KEY "c*" is not allowed: want one exact key`, ""},
		{[]string{"explain"}, "KEY is missing", "throttled explain"},
		{[]string{"explain", "a", "b", "c"}, "there are 3 arguments: want at most 2", "throttled explain"},
		{[]string{"plan"}, "--jobs is missing: give the number of jobs in the line", ""},
		{[]string{"plan", "--jobs", "1"}, "there is no policy to plan with: --rate is needed, or a KEY", ""},
		{[]string{"plan", "--jobs", "1", "--quota", "5/h"}, "there is no policy to plan with: --rate is needed", ""},
		{[]string{"plan", "--jobs", "0"}, "--jobs 0 is not allowed: want 1 to 1000000000", ""},
		{[]string{"plan", "c*", "--jobs", "1"}, `KEY "c*" is not allowed: want one exact key`, ""},
		{[]string{"plan", "a", "b", "--jobs", "1"}, "there are 2 arguments: want at most 1", "throttled plan"},
		{[]string{"plan", "", "--jobs", "1"}, `KEY "" is not allowed`, ""},
		{[]string{"plan", "a", "--jobs", "0"}, "--jobs 0 is not allowed: want 1 to 1000000000", ""},
		{[]string{"plan", "a", "--jobs", "many"}, `--jobs "many" is not allowed: want a whole number`, "throttled plan"},
		{[]string{"plan", "a", "--jobs", "1", "--cost", "0"}, "--cost 0 is not allowed: want a whole number from 1 to 1000000000", ""},
		{[]string{"plan", "a", "--jobs", "1", "--run", "-1s"}, "--run -1s is not allowed: want 0 to 8784h0m0s", ""},
		{[]string{"plan", "a", "--jobs", "1", "--start", "noon"}, `--start "noon" is not allowed: want a time in RFC 3339, such as 2026-12-01T06:00:00Z`, ""},
		{[]string{"plan", "a", "--jobs", "1", "--start", "2200-01-01T00:00:00Z"}, `--start "2200-01-01T00:00:00Z" is not allowed: want an instant from 1970 to 2199`, ""},
		{[]string{"plan", "a", "--jobs", "1", "--plot", "x.pdf"}, `--plot "x.pdf" is not allowed: want the name of a file that ends in .svg or .png`, ""},
		{[]string{"plan", "a", "--jobs", "1", "--rate", "x"}, `--rate "x" is not allowed`, ""},
		{[]string{"plan", "a", "--jobs", "1", "--quota", "1/h", "--no-quotas"}, "--quota and --no-quotas exclude each other", ""},
		{[]string{"plan", "--jobs", "1", "--rate", "1/s", "--zone", "Europe/Berlin"}, "--zone needs hours", ""},
		{[]string{"plan", "--jobs", "1", "--rate", "1/s", "--ramp", "10% 5m"}, "unknown flag: --ramp; did you mean --rate?", "throttled plan"},
		{[]string{"policy", "diff", "--confg", "x"}, "unknown flag: --confg; did you mean --config?", "throttled policy diff"},
		{[]string{"plan", "--job", "1"}, "unknown flag: --job; did you mean --jobs or --json?", "throttled plan"},
		{[]string{"polcy"}, `unknown command "polcy" for "throttled"; did you mean policy?`, "throttled"},
		{[]string{"jobs", "lst"}, `; did you mean get or list?`, "throttled jobs"},
		{[]string{"policy", "xxxxx"}, `unknown command "xxxxx" for "throttled policy"` + "\n", "throttled policy"},
		{[]string{"stats", "a"}, `there is an argument "a" without a flag`, "throttled stats"},
		{[]string{"keys", "a*b*"}, `PATTERN "a*b*" is not allowed: want at most one *`, ""},
		{[]string{"keys", ""}, `PATTERN "" is not allowed: want 1 to 512 bytes`, ""},
		{[]string{"keys", "a", "b"}, "there are 2 arguments: want at most 1", "throttled keys"},
		{[]string{"keys", "--limit", "0"}, "--limit 0 is not allowed: want a whole number from 1 to 1000", ""},
		{[]string{"max-waiting", "-1"}, `N "-1" is not allowed: want a whole number from 1 to 1000000000, or 0 for no bound`, "throttled max-waiting"},
		{[]string{"max-waiting", "--", "-1"}, `N "-1" is not allowed: want a whole number from 1 to 1000000000, or 0 for no bound`, ""},
		{[]string{"max-waiting", "1000000001"}, `N "1000000001" is not allowed`, ""},
		{[]string{"max-waiting", "many"}, `N "many" is not allowed`, ""},
		{[]string{"jobs", "lst"}, `unknown command "lst" for "throttled jobs"`, "throttled jobs"},
		{[]string{"jobs", "list"}, "KEY is missing", "throttled jobs list"},
		{[]string{"jobs", "list", long}, "KEY 513 is not allowed", ""},
		{[]string{"jobs", "list", "a", "--state", "running"}, `--state "running" is not allowed: want waiting, delayed, in_flight, dead, done`, ""},
		{[]string{"jobs", "list", "a", "--limit", "1001"}, "--limit 1001 is not allowed", ""},
		{[]string{"jobs", "get", "a"}, "ID is missing", "throttled jobs get"},
		{[]string{"jobs", "get", "", "b"}, `KEY "" is not allowed`, ""},
		{[]string{"jobs", "get", "a", "b", "--payload", "--json"}, "--payload prints the payload alone: leave out --headers and --json", ""},
		{[]string{"jobs", "get", "a", "b", "--payload", "--headers"}, "--payload prints the payload alone", ""},
		{[]string{"jobs", "cancel", "a"}, "ID... is missing", "throttled jobs cancel"},
		{[]string{"jobs", "front", "", "b"}, `KEY "" is not allowed`, ""},
		{[]string{"jobs", "release", "a", "b", "--by", ""}, `--by "" is not allowed`, ""},
		{[]string{"jobs", "priority", "a", "b"}, "P is missing", "throttled jobs priority"},
		{[]string{"jobs", "priority", "a", "b", "10"}, `P "10" is not allowed: want a whole number from 0 to 9`, ""},
		{[]string{"jobs", "priority", "a", "b", "high"}, `P "high" is not allowed`, ""},
		{[]string{"dead", "list", "a", "b"}, "there are 2 arguments: want at most 1", "throttled dead list"},
		{[]string{"dead", "list", ""}, `KEY "" is not allowed`, ""},
		{[]string{"dead", "replay"}, "KEY is missing, or --all for the dead letters of all keys", ""},
		{[]string{"dead", "replay", "a"}, "ID is missing, or --all for all dead letters of the key", ""},
		{[]string{"dead", "replay", "a", "b", "--all"}, "--all and ids exclude each other: give one of them", ""},
		{[]string{"dead", "replay", "", "--all"}, `KEY "" is not allowed`, ""},
		{[]string{"dead", "discard", "--all"}, "discard --all throws dead letters away for good: give --yes if that is wanted", ""},
		{[]string{"trail", "--limit", "0"}, "--limit 0 is not allowed: want a whole number from 1 to 10000", ""},
		{[]string{"trail", "--limit", "10001"}, "--limit 10001 is not allowed", ""},
		{[]string{"repair"}, "KEY is missing", "throttled repair"},
		{[]string{"trail", "--redis", ""}, "--redis is empty: give it a URL, or leave it out", ""},
		{[]string{"trail", "--redis", "http://:S3CRET@h"}, "--redis: this is not a Redis URL: want a URL that starts with redis://", ""},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			s := begin(map[string]string{"WEIR_REDIS": "redis://127.0.0.1:1"}, c.args...)
			require.Equal(t, exitInvalid, s.exit(t, patience), "%s", &s.stderr)
			require.Empty(t, s.stdout.String())
			require.Contains(t, s.stderr.String(), "throttled: ")
			require.Contains(t, s.stderr.String(), c.want)
			require.NotContains(t, s.stderr.String(), "S3CRET")
			require.Equal(t, c.help != "", strings.HasSuffix(s.stderr.String(), "See "+c.help+" --help.\n"), "%s", &s.stderr)
		})
	}
}

// requests are all commands but serve, each with arguments that are fine.
func requests(t *testing.T) [][]string {
	t.Helper()
	return [][]string{
		{"policy", "list"}, {"policy", "get", "a"}, {"policy", "set", "a", "--rate", "1/s"}, {"policy", "remove", "a"},
		{"policy", "diff", "--config", configFile(t, "policies: []\n")},
		{"pause", "a"}, {"resume", "a"}, {"drain", "a"}, {"cooldown", "a", "--for", "1m"}, {"purge", "a", "--yes"},
		{"explain", "a"}, {"trail"}, {"repair", "a"}, {"holds"}, {"verify", "a"}, {"plan", "a", "--jobs", "1"}, {"stats"}, {"keys"}, {"max-waiting"},
		{"jobs", "list", "a"}, {"jobs", "get", "a", "b"}, {"jobs", "cancel", "a", "b"}, {"jobs", "front", "a", "b"},
		{"jobs", "release", "a", "b"}, {"jobs", "priority", "a", "b", "9"},
		{"dead", "list"}, {"dead", "get", "a", "b"}, {"dead", "replay", "a", "b"}, {"dead", "discard", "--all", "--yes"},
	}
}

func TestRequestsWithoutRedis(t *testing.T) {
	for _, args := range requests(t) {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			env := map[string]string{"WEIR_REDIS": "redis://:S3CRET@127.0.0.1:1?max_retries=-1"}
			s := begin(env, args...)
			require.Equal(t, exitRedis, s.exit(t, patience))
			require.Empty(t, s.stdout.String())
			require.Contains(t, s.stderr.String(), "throttled: WEIR_REDIS: cannot use redis://127.0.0.1:1: ")
			require.Contains(t, s.stderr.String(), "connection refused; start one, or give the URL of another by --redis or WEIR_REDIS\n")
			require.NotContains(t, s.stderr.String(), "S3CRET")
		})
	}
}

func TestInterruptedRequest(t *testing.T) {
	stalled := throttletest.StartRedis(t)
	require.NoError(t, stalled.Pause())
	s := begin(nil, "policy", "list", "--redis", stalled.URL())
	s.signals <- syscall.SIGINT
	require.Equal(t, exitForced, s.exit(t, 2*time.Second))
	require.Contains(t, s.stderr.String(), "throttled: interrupted (signal: interrupt): ")
}

// Without --by the trail names the user of this machine.
func TestWhoByDefault(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, "tester@"+host, userAtHost(func(string) string { return "tester" }))
	u, err := user.Current()
	require.NoError(t, err)
	require.Equal(t, u.Username+"@"+host, userAtHost(func(string) string { return "" }))

	r := throttletest.StartRedis(t)
	ask(t, r, "pause", "a")
	ask(t, r, "resume", "a", "--by", "the night shift")
	trail, err := openAt(t, r).Trail(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, trail, 2)
	require.Equal(t, "the night shift", trail[0].Who)
	require.Equal(t, "tester@"+host, trail[1].Who)
}

func openAt(t *testing.T, r *throttletest.Redis) *throttle.Queue {
	t.Helper()
	return queueAt(t, r.URL())
}

func TestRequestHelp(t *testing.T) {
	flags := map[string][]string{
		"policy list": nil, "policy get": nil, "policy remove": {"--by NAME"},
		"policy diff": {"--config FILE", "1    there are differences", "WEIR_CONFIG"},
		"policy set": {
			"--by NAME", "--rate RATE", "--burst UNITS", "--max-in-flight N", "--quota 'LIMIT/PER [sliding|fixed] [ZONE]'", "--parent KEY",
			"--weight N", "--minimum RATE", "--open '[DAYS] HH:MM-HH:MM'", "--zone ZONE", "--ramp 'PERCENT DURATION'",
			"--ordered ", "--ageing DURATION", "--job-ttl DURATION", "--max-waiting N", "--overflow ACTION", "--history N", "--keep-done DURATION",
			"--events ", "--listen MODE", "--floor RATE", "--circuit-failures N", "--circuit-ratio PERCENT", "--circuit-rest DURATION", "--circuit-disable DURATION", "--no-circuit",
			"--no-quotas", "--no-parent", "--no-minimum", "--no-hours", "--no-ramp", "starts from the one that governed",
		},
		"pause": {"--by NAME", "one of its parents"}, "resume": {"--by NAME", "explain"}, "drain": {"--by NAME"},
		"cooldown": {"--by NAME", "--for DURATION", "up to 8784h", "--until TIME"},
		"purge":    {"--by NAME", "--yes", "for good", "--state STATE", "--type TYPE", "--id-prefix TEXT", "--before TIME|AGE"},
		"explain":  {"in_flight", "order of precedence", "KEY [ID]", "workers", "scheduler"}, "holds": nil, "verify": {"--plot FILE"},
		"plan":  {"--jobs N", "--cost UNITS", "--run DURATION", "--start TIME", "--plot FILE", "--rate RATE", "--burst UNITS", "--quota ", "--no-parent"},
		"stats": nil, "keys": {"--limit N", "--cursor CURSOR", "[PATTERN]"}, "max-waiting": {"--by NAME", "[N]", "no bound"},
		"jobs list": {"--state STATE", "in_flight", "--limit N", "--cursor CURSOR", "(default 50)"}, "jobs get": {"--payload ", "--headers "},
		"jobs cancel": {"1    some jobs were not there"}, "jobs front": nil, "jobs release": {"--by NAME", "1    some jobs were not there"},
		"jobs priority": {"0 to 9"}, "dead list": {"--limit N", "--cursor CURSOR"}, "dead get": {"--payload ", "--headers "},
		"dead replay": {"--by NAME", "--all "}, "dead discard": {"--by NAME", "--all ", "--yes "},
		"trail": {"--limit N", "(default 20)"}, "repair": {"bookkeeping"},
	}
	for _, args := range requests(t) {
		name := args[0]
		if name == "policy" || name == "jobs" || name == "dead" {
			name += " " + args[1]
		}
		t.Run(name, func(t *testing.T) {
			require.Contains(t, flags, name)
			s := begin(map[string]string{"WEIR_REDIS": "redis://:S3CRET@h"}, append(strings.Fields(name), "--help")...)
			require.Zero(t, s.exit(t, patience))
			require.Empty(t, s.stderr.String())
			for _, want := range append(flags[name],
				"Exit codes:", "0    done", "2    wrong usage", "3    Redis unavailable", "130  interrupted",
				"Examples:\n  throttled "+name, "--redis URL", "or else redis://127.0.0.1:6379/0", "--json", "Usage:\n  throttled "+name+" ") {
				require.Contains(t, s.stdout.String(), want)
			}
			require.NotContains(t, s.stdout.String(), "S3CRET")
		})
	}
	s := begin(nil, "policy")
	require.Zero(t, s.exit(t, patience))
	for _, want := range []string{"1. the one for exactly this key", "5. the built-in one: 10/s, burst 1, 100 in flight", "diff        Compare", "set         Store"} {
		require.Contains(t, s.stdout.String(), want)
	}
	require.Equal(t, "10/s burst 1", throttle.DefaultPolicy.Limit.String())
	require.Equal(t, 100, throttle.DefaultPolicy.MaxInFlight)
}
