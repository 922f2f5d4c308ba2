package throttle

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPatternsMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		literal int
		yes, no []string
	}{
		{"*", 0, []string{"", "a", "*", "a*b", "\x00", "é"}, nil},
		{"acme", 4, []string{"acme"}, []string{"", "acm", "acmee", "Acme", "*"}},
		{"acme:*", 5, []string{"acme:", "acme:eu", "acme:*", "acme:\n"}, []string{"", "acme", "xacme:", "ACME:eu"}},
		{"*.example.com", 12, []string{".example.com", "a.example.com", "a.b.example.com"}, []string{"example.com", "a.example.comx", "a.exampleXcom"}},
		{"a*b", 2, []string{"ab", "a*b", "aab", "axyzb", "a\nb"}, []string{"a", "b", "", "ba", "abc"}},
		{"aba*aba", 6, []string{"abaaba", "abaXaba"}, []string{"aba", "ababa"}},
		{"é*", 2, []string{"é", "éa"}, []string{"e", "\xc3", "\xc3\xa8"}},
		{"[a-z]*", 5, []string{"[a-z]", "[a-z]b"}, []string{"b", "bc"}},
		{"%d+?*", 4, []string{"%d+?1"}, []string{"1", "11"}},
	} {
		require.Equal(t, c.literal, literal(c.pattern), c.pattern)
		require.Equal(t, strings.Contains(c.pattern, "*"), isPattern(c.pattern))
		for _, key := range c.yes {
			require.True(t, matches(c.pattern, key), "%q, %q", c.pattern, key)
		}
		for _, key := range c.no {
			require.False(t, matches(c.pattern, key), "%q, %q", c.pattern, key)
		}
	}
}

// A pattern is what an anchored regular expression with .* in the place of the * is.
func TestPatternsMatchAsExpressionsDo(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab.é\n")), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		pattern := before + "*" + after
		key := rapid.OneOf(text, rapid.Map(text, func(s string) string { return before + s + after }),
			rapid.Just(before+after), rapid.Just(before), rapid.Just(after)).Draw(t, "key")
		same := regexp.MustCompile(`(?s)\A` + regexp.QuoteMeta(before) + `.*` + regexp.QuoteMeta(after) + `\z`)
		require.Equal(t, same.MatchString(key), matches(pattern, key), "%q, %q", pattern, key)
		require.Equal(t, len(before)+len(after), literal(pattern))
		require.True(t, matches(pattern, pattern))
		require.Equal(t, key == before, matches(before, key))
	})
}

func TestPolicyNames(t *testing.T) {
	for _, name := range []string{"*", "a", "a*", "*a", "a*b", "{*}", " ", strings.Repeat("k", MaxKeyBytes-1) + "*"} {
		require.NoError(t, ValidatePolicyName(name), "%q", name)
	}
	for _, name := range []string{"", "**", "a*b*", "*a*", "\xff*", strings.Repeat("k", MaxKeyBytes) + "*"} {
		var e *InvalidError
		require.ErrorAs(t, ValidatePolicyName(name), &e, "%q", name)
		require.Equal(t, "key", e.Field)
	}
	require.EqualError(t, ValidatePolicyName("a**"), `key "a**" is not allowed: want at most one *, which stands for any text`)
}
