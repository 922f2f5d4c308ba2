package limiter

import (
	"context"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func distinct(matches [][]string) []string {
	var list []string
	for _, m := range matches {
		list = append(list, m[1])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func TestHeadersSayWhatAlgorithmsTake(t *testing.T) {
	declared, used := regexp.MustCompile(`(?m)^-- ARGV\[(\d+)@\] `), regexp.MustCompile(`ARGV\[(\d+)@\]`)
	for a, file := range scriptFiles {
		t.Run(a.String(), func(t *testing.T) {
			header, body, ok := strings.Cut(source(file.file), "\n\n--- read\n")
			require.True(t, ok)
			require.Regexp(t, `(?m)^-- Stored: `, header)
			require.Regexp(t, `(?m)^-- State: `, header)
			said := distinct(declared.FindAllStringSubmatch(header, -1))
			require.Len(t, said, file.args)
			require.Equal(t, said, distinct(used.FindAllStringSubmatch(body, -1)))
			for n := range file.fixed {
				require.Contains(t, said, strconv.Itoa(n))
			}
			sections := sectionsOf(source(file.file))
			require.Len(t, sections, 6)
			for _, name := range []string{"read", "slot", "charge", "give back", "keep", "state"} {
				require.NotEmpty(t, sections[name], name)
			}
			// State is what a reply has of a rule, and what Go reads of it.
			m := newMeter(newTerms(Rule{a, throttle.Limit{Rate: 1, Period: throttle.MinPeriod, Burst: 1}}))
			in := replyReader{values: make([]int64, 9)}
			in.meter(m)
			require.Equal(t, 9-len(in.values), strings.Count(sections["state"], ",")+1)
		})
	}
}

func TestHeadersSayWhatScriptsTake(t *testing.T) {
	for _, name := range []string{"take", "cancel"} {
		header, body, ok := strings.Cut(source(name), "\n\n")
		require.True(t, ok)
		for _, part := range []string{"-- Purpose: ", "-- Guarantee: ", "-- KEYS[i]     ", "-- ARGV[1]     ", "-- ARGV[2]     ", "-- ARGV[3..]   ", "-- Reply: "} {
			require.Contains(t, header, part, name)
		}
		require.Contains(t, body, "ARGV[2]", name)
		require.Contains(t, source("head"), "ARGV[1]")
	}
}

// Each rule has the arguments that are meant for it, and a script is made once for all limiters of its shape.
func TestScriptsAreUnrolled(t *testing.T) {
	text := "a\n--@ each\nARGV[-1@] ARGV[0@] ARGV[1@] ARGV[2@] ARGV[3@] ARGV[4@] ARGV[5@] x@\n--@ end\nb\n"
	rules := []shape{{LeakyBucketAlgorithm, true, false}, {TokenBucketAlgorithm, true, false}, {LeakyBucketAlgorithm, false, true}}
	require.Equal(t, "a\n"+
		"ARGV[3] ARGV[4] 1 ARGV[5] 0 ARGV[6] 0 x1\n"+
		"ARGV[7] ARGV[8] 1 ARGV[9] ARGV[10] ARGV[11] 0 x2\n"+
		"ARGV[12] ARGV[13] ARGV[14] ARGV[15] ARGV[16] ARGV[17] ARGV[18] x3\nb\n", unroll(text, rules, 2))

	s := newScripts(serverClock)
	require.Same(t, s.of(rules).take.Script, s.of(slices.Clone(rules)).take.Script)
	require.NotContains(t, s.of(rules).take.source, "@")
	require.NotContains(t, s.of(rules).cancel.source, "@")
	for a := range scriptFiles {
		for _, whole := range []bool{false, true} {
			terms := newTerms(Rule{a, throttle.Limit{Rate: 3, Period: throttle.MinPeriod, Burst: 1}})
			if whole {
				terms = newTerms(Rule{a, throttle.Limit{Rate: 1, Period: throttle.MinPeriod, Burst: 1}})
			}
			var out strings.Builder
			taken := ofRule(&out, "ARGV[1@] ARGV[2@] ARGV[3@] ARGV[4@] ARGV[5@]", terms.shape(), 1, 0)
			require.Len(t, terms.appendArgs(nil, 1), taken, "%v", terms)
		}
	}
}

// Products that are more than a number of Lua holds are as exact as those that are not.
func TestArithmeticOfScriptsIsExact(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	script := source("exact") + "\nreturn { muldiv(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])) }"
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.Int64Range(0, 1<<53-1).Draw(rt, "a")
		b := rapid.Int64Range(0, throttle.MaxRate).Draw(rt, "b")
		c := rapid.Int64Range(1, throttle.MaxPeriod.Microseconds()).Draw(rt, "c")
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		quotient, rest := new(big.Int).DivMod(product, big.NewInt(c), new(big.Int))
		whole, remainder, ok := muldiv(a, b, c)
		require.Equal(rt, quotient.IsInt64(), ok)
		if !ok || quotient.Int64() >= 1<<53 {
			return
		}
		require.Equal(rt, []int64{quotient.Int64(), rest.Int64()}, []int64{whole, remainder})
		got, err := client.Eval(context.Background(), script, nil, a, b, c).Int64Slice()
		require.NoError(rt, err)
		require.Equal(rt, []int64{whole, remainder}, got)
	})
}
