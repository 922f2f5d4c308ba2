package script

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// operations are the scripts that are called; the other files are what they share.
func operations(t *testing.T) map[string]string {
	t.Helper()
	entries, err := files.ReadDir("lua")
	require.NoError(t, err)
	found := make(map[string]string)
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".lua")
		if !slices.Contains(parts(), name) {
			found[name] = source(name)
		}
	}
	require.Len(t, found, 28)
	return found
}

// parts are the files that are not called but made part of others.
func parts() []string {
	return append([]string{"clock", "event", "family", "history", "listen", "outlook", "rules", "trail"}, shared...)
}

var (
	declared      = regexp.MustCompile(`(?m)^-- ARGV\[(\d+)\] `)
	declaredGroup = regexp.MustCompile(`(?m)^-- ARGV\[(\d+)\.\.\]\s+groups of (\d+): `)
	used          = regexp.MustCompile(`ARGV\[(\d+)\]`)
	usedGroup     = regexp.MustCompile(`for i = (\d+), #ARGV, (\d+) do`)
	usedInGroup   = regexp.MustCompile(`ARGV\[i(?: \+ (\d+))?\]`)
)

func numbers(matches [][]string) []int {
	var list []int
	for _, m := range matches {
		n, _ := strconv.Atoi(m[1])
		list = append(list, n)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func split(text string) (header, body string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		header += line
	}
	return header, strings.TrimPrefix(text, header)
}

func TestHeadersSayWhatScriptsTake(t *testing.T) {
	for name, text := range operations(t) {
		t.Run(name, func(t *testing.T) {
			header, body := split(text)
			for _, part := range []string{"-- Purpose: ", "-- Guarantee: ", "-- KEYS[1]     due set of the shard\n", "-- Reply: "} {
				require.Contains(t, header, part)
			}
			require.NotContains(t, body, "KEYS[", "the only key is bound in shard.lua")
			require.Equal(t, numbers(declared.FindAllStringSubmatch(header, -1)), numbers(used.FindAllStringSubmatch(body, -1)))

			group := declaredGroup.FindStringSubmatch(header)
			loops := usedGroup.FindAllStringSubmatch(body, -1)
			if group == nil {
				require.Empty(t, loops, "a loop over arguments that the header does not tell of")
				return
			}
			require.NotEmpty(t, loops, "groups that nothing loops over")
			for _, loop := range loops {
				require.Equal(t, group[1:], loop[1:])
			}
			size, err := strconv.Atoi(group[2])
			require.NoError(t, err)
			for _, offset := range numbers(usedInGroup.FindAllStringSubmatch(body, -1)) {
				require.Less(t, offset, size)
			}
		})
	}
}

// commands are all that scripts may call: none newer than Redis 6.2, none whose
// work grows with the keyspace.
var commands = []string{
	"DEL", "EXISTS", "GET", "HDEL", "HEXISTS", "HGET", "HGETALL", "HINCRBY", "HLEN", "HMGET", "HSCAN", "HSET", "HSETNX", "INCR",
	"PERSIST", "PEXPIRE", "PUBLISH", "SADD", "SCARD", "SET", "SRANDMEMBER", "SREM", "TIME", "XADD",
	"ZADD", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZRANK", "ZREM", "ZREMRANGEBYRANK", "ZREVRANGEBYSCORE", "ZSCAN", "ZSCORE",
}

func TestScriptsCallOldAndBoundedCommands(t *testing.T) {
	call := regexp.MustCompile(`redis\.p?call\(([^,)]*)`)
	all := operations(t)
	for _, name := range parts() {
		all[name] = source(name)
	}
	for name, text := range all {
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			require.Contains(t, commands, strings.Trim(m[1], "'"), "%s.lua", name)
		}
		// The policies of a config file are as many as an operator wrote, and audit asks
		// for the number before.
		if name != "policies" && name != "audit" {
			require.NotContains(t, text, "HGETALL", "%s.lua", name)
		}
		for _, m := range regexp.MustCompile(`redis\.call\('Z(?:REV)?RANGEBYSCORE'[^\n]*`).FindAllString(text, -1) {
			require.Contains(t, m, "'LIMIT'", "%s.lua: %s", name, m)
		}
		require.NotRegexp(t, `'ZRANGE', [^\n]*, 0, -1`, text, "%s.lua", name)
	}
}

func TestScriptsCountUnderKnownNames(t *testing.T) {
	all := operations(t)
	for _, name := range parts() {
		all[name] = source(name)
	}
	found := 0
	for name, text := range all {
		for _, m := range regexp.MustCompile(`tally\('(\w+)'`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, Counters, m[1], "%s.lua", name)
			found++
		}
	}
	require.Greater(t, found, 10)
}
