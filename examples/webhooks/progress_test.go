package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestBars(t *testing.T) {
	r, err := startReceiver()
	require.NoError(t, err)
	defer r.close()
	var all []destination
	for _, key := range []string{"billing", "crm\x1b[2J"} {
		d := newDestination(key, throttle.DefaultPolicy.Limit)
		d.add("1", nil)
		d.add("2", nil)
		all = append(all, d)
	}
	r.expect(all)
	var screen bytes.Buffer
	b := newBars(&screen, all, r)
	b.show()
	require.Equal(t, 2, strings.Count(screen.String(), "\n"))
	require.Equal(t, 2, strings.Count(screen.String(), "(0/2)"))
	require.NotContains(t, screen.String(), "\x1b[2J", "a key does not command the terminal")

	screen.Reset()
	r.accepted["billing"] = 2
	b.show()
	require.True(t, strings.HasPrefix(screen.String(), "\x1b[2A\r"), "it is drawn over the first time")
	require.Equal(t, 2, strings.Count(screen.String(), "\n"))
	require.Contains(t, screen.String(), "100%")
	require.Contains(t, screen.String(), "(2/2)")
	require.Contains(t, screen.String(), "(0/2)")
}

func TestLabel(t *testing.T) {
	for key, want := range map[string]string{
		"billing":                "billing",
		"größe":                  "größe",
		"a\nb":                   `"a\nb"`,
		strings.Repeat("x", 24):  strings.Repeat("x", 24),
		strings.Repeat("ü", 100): strings.Repeat("ü", 23) + "…",
	} {
		require.Equal(t, want, label(key))
	}
}
