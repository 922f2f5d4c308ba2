package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

const settingsFile = "redis: redis://file\nworker: {concurrency: 1, shutdown_timeout: 1s}\nhttp: {listen: ':1'}\n"

func settle(t *testing.T, env map[string]string, args ...string) (settings, error) {
	t.Helper()
	var f flags
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.register(set)
	require.NoError(t, set.Parse(args))
	return f.settle(set, func(name string) string { return env[name] })
}

func TestPrecedence(t *testing.T) {
	file := configFile(t, settingsFile)
	env := map[string]string{
		"WEIR_REDIS": "redis://env", "WEIR_LISTEN": ":2", "WEIR_CONCURRENCY": "2", "WEIR_SHUTDOWN_TIMEOUT": "2s",
		"WEIR_LOG_LEVEL": "debug", "WEIR_LOG_FORMAT": "json",
	}
	args := []string{
		"--redis", "redis://flag", "--listen", ":3", "--concurrency", "3", "--shutdown-timeout", "3s",
		"--log-level", "error", "--log-format", "text",
	}
	withFile := func(env map[string]string) map[string]string {
		with := map[string]string{"WEIR_CONFIG": file}
		for name, value := range env {
			with[name] = value
		}
		return with
	}
	type values struct {
		redis, listen   string
		concurrency     int
		shutdownTimeout time.Duration
		level           slog.Level
		json            bool
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want values
	}{
		{"defaults", nil, nil, values{"", "127.0.0.1:8080", 500, 10 * time.Second, slog.LevelInfo, false}},
		{"file by flag", nil, []string{"--config", file}, values{"redis://file", ":1", 1, time.Second, slog.LevelInfo, false}},
		{"file by environment", withFile(nil), nil, values{"redis://file", ":1", 1, time.Second, slog.LevelInfo, false}},
		{"environment above file", withFile(env), nil, values{"redis://env", ":2", 2, 2 * time.Second, slog.LevelDebug, true}},
		{"flags above environment and file", withFile(env), args, values{"redis://flag", ":3", 3, 3 * time.Second, slog.LevelError, false}},
		{
			"an empty flag is given, an empty variable is not",
			withFile(map[string]string{"WEIR_CONCURRENCY": "", "WEIR_LISTEN": ""}), []string{"--redis", ""},
			values{"", ":1", 1, time.Second, slog.LevelInfo, false},
		},
		{"none in the environment", withFile(map[string]string{"WEIR_LISTEN": "none"}), nil, values{"redis://file", "", 1, time.Second, slog.LevelInfo, false}},
		{"flag of one, environment of another", withFile(map[string]string{"WEIR_REDIS": "redis://env"}), []string{"--concurrency", "9"}, values{"redis://env", ":1", 9, time.Second, slog.LevelInfo, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := settle(t, c.env, c.args...)
			require.NoError(t, err)
			require.True(t, s.scheduler && s.worker)
			require.Equal(t, c.want, values{
				s.config.Redis, s.config.HTTP.Listen, s.config.Worker.Concurrency, s.config.Worker.ShutdownTimeout, s.logLevel, s.logJSON,
			})
		})
	}
}

func TestAllowedNetworks(t *testing.T) {
	file := configFile(t, "http: {allow_networks: [10.0.0.0/8]}")
	env := map[string]string{"WEIR_HTTP_ALLOW_NETWORKS": "192.168.0.0/16, ::1"}
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"default", nil, nil, "[]"},
		{"file", nil, []string{"--config", file}, "[10.0.0.0/8]"},
		{"environment above file", env, []string{"--config", file}, "[192.168.0.0/16 ::1/128]"},
		{"flags above environment", env, []string{"--allow-network", "127.0.0.0/8", "--allow-network", "::1/128"}, "[127.0.0.0/8 ::1/128]"},
		{"none by the environment", map[string]string{"WEIR_HTTP_ALLOW_NETWORKS": "none"}, []string{"--config", file}, "[]"},
		{"none by a flag", env, []string{"--allow-network", ""}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := settle(t, c.env, c.args...)
			require.NoError(t, err)
			require.Equal(t, c.want, fmt.Sprint(s.config.HTTP.AllowNetworks))
		})
	}
	s, err := settle(t, map[string]string{"WEIR_HTTP_PROXY": "environment"})
	require.NoError(t, err)
	require.Equal(t, "environment", s.config.HTTP.Proxy)
}

func TestParts(t *testing.T) {
	s, err := settle(t, nil, "--scheduler-only")
	require.NoError(t, err)
	require.True(t, s.scheduler && !s.worker)
	s, err = settle(t, nil, "--worker-only", "--redis", "redis://h")
	require.NoError(t, err)
	require.True(t, s.worker && !s.scheduler)
}

func TestWrongUsage(t *testing.T) {
	bad := configFile(t, "worker:\n  lease: 5\nnope: 1\n")
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want []string
		help string // command that is pointed to
	}{
		{name: "no such command", args: []string{"sreve"}, want: []string{`unknown command "sreve" for "throttled"; did you mean serve?`}, help: "throttled"},
		{name: "unknown flag", args: []string{"serve", "--nope"}, want: []string{"unknown flag: --nope"}, help: "throttled serve"},
		{name: "argument", args: []string{"serve", "redis://:S3CRET@h"}, want: []string{"an argument (not shown, it may hold a password) without a flag; if it is part of a value with spaces, quote the value"}, help: "throttled serve"},
		{
			name: "both parts only", args: []string{"serve", "--scheduler-only", "--worker-only"},
			want: []string{"--scheduler-only and --worker-only exclude each other"}, help: "throttled serve",
		},
		{
			name: "part in words", args: []string{"serve", "--worker-only=maybe"},
			want: []string{`--worker-only "maybe" is not allowed: want true or false`}, help: "throttled serve",
		},
		{
			name: "worker without Redis", args: []string{"serve", "--worker-only"},
			want: []string{"--worker-only needs the Redis that the schedulers use: give its URL by --redis, WEIR_REDIS or redis in the config file"},
		},
		{
			name: "worker with a Redis that a flag empties", env: map[string]string{"WEIR_REDIS": "redis://h"},
			args: []string{"serve", "--worker-only", "--redis", ""}, want: []string{"--worker-only needs the Redis"},
		},
		{name: "missing file", args: []string{"serve", "--config", "no-such-file"}, want: []string{"config file: open no-such-file: no such file"}},
		{name: "empty file name", args: []string{"serve", "--config", ""}, want: []string{"--config is empty: give it the name of a file, or leave it out"}},
		{
			name: "bad file", env: map[string]string{"WEIR_CONFIG": bad}, args: []string{"serve"},
			want: []string{bad + ":2:10: worker.lease 5 is not allowed: want a duration with its unit", bad + ":3:1: nope is not a known field"},
		},
		{
			name: "several flags and variables", env: map[string]string{"WEIR_SHUTDOWN_TIMEOUT": "10"},
			args: []string{"serve", "--concurrency", "0", "--listen", "8080", "--allow-network", "10.0.0.1/8", "--log-level", "loud", "--log-format", "xml"},
			want: []string{
				`--concurrency "0" is not allowed: want a whole number from 1 to 100000`,
				`--listen "8080" is not allowed: want host:port`,
				`--log-level "loud" is not allowed: want debug, info, warn or error`,
				`--log-format "xml" is not allowed: want text or json`,
				`--allow-network "10.0.0.1/8" is not allowed: want a network such as`,
				`WEIR_SHUTDOWN_TIMEOUT "10" is not allowed: want a duration with its unit`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(c.env, c.args...)
			require.Equal(t, exitInvalid, s.exit(t, patience))
			require.Empty(t, s.stdout.String())
			for _, want := range c.want {
				require.Contains(t, s.stderr.String(), want)
			}
			require.NotContains(t, s.stderr.String(), "S3CRET")
			require.Equal(t, c.help != "", strings.HasSuffix(s.stderr.String(), "See "+c.help+" --help.\n"))
		})
	}
}

func TestHelp(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"Exit codes:", "serve       Run the scheduler"}},
		{[]string{"--help"}, []string{"Exit codes:", "2    wrong usage"}},
		{[]string{"serve", "--help"}, []string{
			"Exit codes:", "130  ended at once", "1. its flag", "2. the environment", "--config FILE", "--redis URL", "--listen ADDRESS",
			"--scheduler-only", "--worker-only", "--concurrency N", "--shutdown-timeout DURATION", "--log-level LEVEL",
			"--log-format FORMAT", "--allow-network NETWORK", "--http-proxy URL", "WEIR_HTTP_ALLOW_NETWORKS", "/readyz",
		}},
	} {
		s := begin(map[string]string{"WEIR_REDIS": "redis://:S3CRET@h"}, c.args...)
		require.Zero(t, s.exit(t, patience))
		require.Empty(t, s.stderr.String())
		for _, want := range c.want {
			require.Contains(t, s.stdout.String(), want)
		}
		require.NotContains(t, s.stdout.String(), "S3CRET")
	}
}

// What the help says about defaults is what they are.
func TestFlagDefaultsInHelp(t *testing.T) {
	s, err := settle(t, nil)
	require.NoError(t, err)
	var f flags
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.register(set)
	for flag, value := range map[string]string{
		"listen": s.config.HTTP.Listen, "concurrency": "500", "shutdown-timeout": s.config.Worker.ShutdownTimeout.String(),
		"log-level": strings.ToLower(s.logLevel.String()), "log-format": "text",
	} {
		require.Contains(t, set.Lookup(flag).Usage, "(default "+value+")")
	}
	require.Equal(t, 500, s.config.Worker.Concurrency)
}

func TestRedacted(t *testing.T) {
	for url, want := range map[string]string{
		"redis://h:1/2":            "redis://h:1/2",
		"rediss://u:p@h?x=secret":  "rediss://h",
		"redis+cluster://:p@a:1,b": "redis+cluster://a:1,b",
		"redis-sentinel://u:p%40@a/0?master=m&sentinel_password=secret": "redis-sentinel://a/0",
		"no URL": "…",
	} {
		require.Equal(t, want, redacted(url))
	}
}
