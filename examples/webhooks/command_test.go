package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHelp(t *testing.T) {
	r := command(t.Context(), "--help")
	require.Zero(t, r.code)
	require.Empty(t, r.notes)
	for _, part := range []string{"Exit codes:", "130  interrupted", "Examples:", "--redis URL", `(default "webhooks.png")`} {
		require.Contains(t, r.results, part)
	}
	for _, p := range limits {
		require.Regexp(t, `(?m)^  `+p.Key+` +`+p.Limit.String()+`$`, r.results, "the help tells the limits")
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"argument", []string{"stray"}, "stray"},
		{"unknown flag", []string{"--nope"}, "unknown flag: --nope"},
		{"rate without file", []string{"--rate", "5/s"}, "--rate needs --file"},
		{"burst without file", []string{"--burst", "5"}, "--burst needs --file"},
		{"file and duration", []string{"--file", "x", "--for", "3s"}, "[file for]"},
		{"empty file name", []string{"--file", ""}, "--file is empty"},
		{"missing file", []string{"--file", "no-such-file"}, "no-such-file"},
		{"rate 0", []string{"--file", "x", "--rate", "0/s"}, `rate "0/s" is not allowed`},
		{"rate NaN", []string{"--file", "x", "--rate", "NaN/s"}, `rate "NaN/s" is not allowed`},
		{"burst 0", []string{"--file", "x", "--burst", "0"}, "burst 0 is not allowed"},
		{"no time", []string{"--for", "0s"}, "--for 0s is not allowed: want 1s to 10m0s"},
		{"too long", []string{"--for", "11m"}, "--for 11m0s is not allowed"},
		{"no folder", []string{"--out", "no/such/folder.png"}, `--out "no/such/folder.png" is not allowed`},
		{"Redis URL", []string{"--redis", "http://u:S3CRET@h"}, "--redis is not a Redis URL: want a URL that starts with redis://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := command(t.Context(), c.args...)
			require.Equal(t, exitInvalid, r.code)
			require.Empty(t, r.results)
			require.Contains(t, r.notes, "webhooks: ")
			require.Contains(t, r.notes, c.want)
			require.NotContains(t, r.notes, "S3CRET")
		})
	}
}

func TestBadFile(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "\n\n", "there are no events in it"},
		{"no JSON", "{\"key\":\"a\"}\n{\"key\":", "line 2, column 7: not valid JSON"},
		{"no key", `{"id":"a"}`, "line 1: key"},
		{"id twice", "{\"key\":\"a\",\"id\":\"x\"}\n{\"key\":\"b\",\"id\":\"x\"}\n{\"key\":\"a\",\"id\":\"x\"}", `line 3: id "x" is that of line 1 as well`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "events.ndjson")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			r := command(t.Context(), "--file", file, "--out", filepath.Join(t.TempDir(), "p.png"))
			require.Equal(t, exitInvalid, r.code, r)
			require.Contains(t, r.notes, c.want)
		})
	}
}

// The default run has to end within 40 s, also where Redis is slow.
func TestDuration(t *testing.T) {
	for _, d := range madeUp(limits, 25*time.Second) {
		require.InDelta(t, 25, d.duration().Seconds(), 1, d.key)
		require.Greater(t, d.attempts(), len(d.events))
	}
	require.Less(t, 25*time.Second+patience, 40*time.Second)
}
