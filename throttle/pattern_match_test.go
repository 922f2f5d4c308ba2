package throttle_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// matching are the names, of policies that are stored, that a key is governed by.
func (d *driven) matching(t require.TestingT, key string) (names []string) {
	for _, c := range d.run(t, d.scripts.Explain(0, key, "")).Explanation().Candidates {
		if c.Source == "file" {
			names = append(names, c.Name)
		}
	}
	return names
}

func TestPatternsMatch(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		for _, c := range []struct {
			pattern string
			yes, no []string
		}{
			{"*", []string{"a", "a b", "\x00", "é"}, nil},
			{"acme", []string{"acme"}, []string{"acm", "acmee", "Acme"}},
			{"acme:*", []string{"acme:", "acme:eu", "acme:\n"}, []string{"acme", "xacme:", "ACME:eu"}},
			{"*.example.com", []string{".example.com", "a.example.com", "a.b.example.com"}, []string{"example.com", "a.example.comx", "a.exampleXcom"}},
			{"a*b", []string{"ab", "aab", "axyzb", "a\nb"}, []string{"a", "b", "ba", "abc"}},
			{"aba*aba", []string{"abaaba", "abaXaba"}, []string{"aba", "ababa"}},
			{"é*", []string{"é", "éa"}, []string{"e", "è"}},
			{"[a-z]*", []string{"[a-z]", "[a-z]b"}, []string{"b", "bc"}},
			{"%d+?*", []string{"%d+?1"}, []string{"1", "11"}},
		} {
			d.run(t, d.policies(c.pattern, policyText(1, 1_000_000_000, 1, 1)))
			for _, key := range c.yes {
				require.Equal(t, []string{c.pattern}, d.matching(t, key), "%q, %q", c.pattern, key)
			}
			for _, key := range c.no {
				require.Empty(t, d.matching(t, key), "%q, %q", c.pattern, key)
			}
		}
	})
}

// A pattern is what an anchored regular expression with .* in the place of the * is; of
// several the longest comes first, of two as long the first in byte order.
func TestPatternsMatchAsExpressionsDo(t *testing.T) {
	onBoth(t, func(d *driven) {
		t := d.t
		checks(t, d.few(100))
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab.é\n")), 0, 3, -1)
		rapid.Check(t, func(t *rapid.T) {
			d.reset(t)
			patterns := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
				return text.Draw(t, "before") + "*" + text.Draw(t, "after")
			}), 1, 5, rapid.ID).Draw(t, "patterns")
			var pairs []string
			for _, p := range patterns {
				pairs = append(pairs, p, policyText(1, 1_000_000_000, 1, 1))
			}
			d.run(t, d.policies(pairs...))
			key := text.Draw(t, "key") + "a" + text.Draw(t, "more")
			var want []string
			for _, p := range patterns {
				before, after, _ := strings.Cut(p, "*")
				if regexp.MustCompile(`(?s)\A` + regexp.QuoteMeta(before) + `.*` + regexp.QuoteMeta(after) + `\z`).MatchString(key) {
					want = append(want, p)
				}
			}
			slices.SortFunc(want, func(a, b string) int {
				if len(a) != len(b) {
					return len(b) - len(a)
				}
				return strings.Compare(a, b)
			})
			require.Equal(t, want, d.matching(t, key), "%q", key)
		})
	})
}
