package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"billing":         "billing",
		"tenant {7}: é ü": "tenant {7}: é ü",
		"日本":              "日本",
		"a\tb":            `"a\tb"`,
		"a\nb":            `"a\nb"`,
		"a" + escape:      `"a\x1b[2J"`,
		"a" + c1:          `"a\u009b2J"`,
		"a" + rtl:         `"a\u202e"`,
		"a\x7f":           `"a\x7f"`,
		"a\u00a0b":        `"a\u00a0b"`,
		"\ufeff":          `"\ufeff"`,
		"\xff":            `"\xff"`,
		`"a"`:             `"\"a\""`,
		" a":              `" a"`,
		"a ":              `"a "`,
		"":                `""`,
	} {
		require.Equal(t, want, shown(text))
	}
}

// JSON stays the same JSON, and has nothing that a terminal would not just show.
func TestObjectIsSafeToShow(t *testing.T) {
	var out bytes.Buffer
	c := conn{out: &out}
	given := map[string]string{"k": "<é>" + escape + c1 + rtl + "\x7f\U000e0001\u2028"}
	require.NoError(t, c.object(given))
	require.Equal(t, text(`{"k":"<é>\u001b[2J\u009b2J\u202e\u007f\udb40\udc01\u2028"}`), out.String())
	var got map[string]string
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, given, got)
}

// What errors hold of files and names does not get at the terminal either.
func TestErrorsAreSafeToShow(t *testing.T) {
	require.Equal(t, "a\n\tb é 'c' \\x1b[2J\\u009b2J\\u202e", legible("a\n\tb é 'c' "+escape+c1+rtl))
	s := begin(nil, "serve", "--config", configFile(t, "shards: x\n\"a"+c1+"\": 1\n"))
	require.Equal(t, exitInvalid, s.exit(t, patience))
	require.Contains(t, s.stderr.String(), `throttled.yaml:2:1: a\u009b2J is not a known field`)
	require.NotContains(t, s.stderr.String(), c1)
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	c := conn{out: &out}
	require.NoError(t, c.table([][]string{{"A", "B", "C"}, {"long", "", ""}, {"x", "", "y"}}))
	require.Equal(t, "A     B  C\nlong\nx        y\n", out.String())
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{
		5 * time.Minute: "5m", time.Hour: "1h", 8784 * time.Hour: "8784h", 90 * time.Second: "1m30s", 10 * time.Second: "10s",
		time.Hour + time.Second: "1h0m1s", 1500 * time.Millisecond: "1.5s", 0: "0s", 20 * time.Minute: "20m", 10 * time.Hour: "10h",
	} {
		require.Equal(t, want, brief(d))
	}
}
