package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// per has a policy of n a second, under a parent if one is given.
func per(key string, n int64, parent string) Policy {
	return Policy{Key: key, Limit: Limit{Rate: n, Period: time.Second, Burst: 1}, Parent: parent}
}

// least gives a policy a minimum.
func least(p Policy, cost int64, per time.Duration) Policy {
	p.Minimum = Rate{cost, per}
	return p
}

func TestSetsThatAgree(t *testing.T) {
	for name, set := range map[string][]Policy{
		"none":     nil,
		"one":      {DefaultPolicy},
		"patterns": {per("a*", 1, ""), per("*a", 1, ""), per("*", 1, ""), per("a", 1, "")},
		"four levels, in any order": {
			per("endpoint", 1, "tenant"), per("provider", 9, ""), per("tenant", 2, "account"), per("account", 3, "provider"),
		},
		"a tree": {per("a", 9, ""), per("b", 9, "a"), per("c", 9, "a"), per("d", 9, "b"), per("e", 9, "b")},
		// The pattern matches its parent and the parent's parent, which have policies of
		// their own: those count for them, not the pattern.
		"a pattern that matches its parents": {per("a:*", 1, "a:parent"), per("a:parent", 2, "a:top"), per("a:top", 3, ""), per("*", 1, "a:parent")},
		"minimums that add up to the rate": {
			per("p", 1, ""), least(per("a", 1, "p"), 1, 3*time.Second), least(per("b", 1, "p"), 1, 3*time.Second), least(per("c", 1, "p"), 20, time.Minute),
		},
		"minimums of different parents":  {per("p", 1, ""), per("q", 1, ""), least(per("a", 1, "p"), 1, time.Second), least(per("b", 1, "q"), 1, time.Second)},
		"minimums of patterns and a key": {per("p", 1, ""), least(per("a*", 1, "p"), 1, time.Second), least(per("b*", 1, "p"), 1, time.Second), least(per("c", 1, "p"), 1, time.Second)},
		"keys apart in case and space":   {per("a", 1, ""), per("A", 1, ""), per("a ", 1, "")},
	} {
		require.NoError(t, validateSet(set), name)
	}
}

func TestSetsThatDisagree(t *testing.T) {
	for _, c := range []struct {
		name, field, want string
		set               []Policy
	}{
		{"a policy out of bounds", "policies[1].rate", `policies[1].rate 0 is not allowed`, []Policy{per("a", 1, ""), per("b", 0, "")}},
		{"deep in a policy", "policies[0].quotas[0].per", "", []Policy{{Key: "a", Limit: DefaultPolicy.Limit, Quotas: []Quota{{Limit: 1}}}}},
		{"a key twice", "policies[2].key", `policies[2].key "a" is not allowed: want one policy a key`, []Policy{per("a", 1, ""), per("b", 1, ""), per("a", 2, "")}},
		{"a pattern twice", "policies[1].key", "", []Policy{per("a*", 1, ""), per("a*", 1, "")}},
		{"a parent without a policy", "policies[0].parent", `policies[0].parent "p" is not allowed: want a key that has a policy of its own`, []Policy{per("a", 1, "p"), per("p*", 1, ""), per("*", 1, "")}},
		{"a grandparent without a policy", "policies[1].parent", "", []Policy{per("a", 1, "p"), per("p", 1, "q")}},
		{"a loop of one", "policies[0].parent", "", []Policy{per("a", 1, "a")}},
		{"a loop of two", "policies[0].parent", `policies[0].parent "b" is not allowed: want no loop: the parents of "b" lead back to "a"`, []Policy{per("a", 1, "b"), per("b", 1, "a")}},
		{"below a loop", "policies[0].parent", `the parents of "b" lead back to "b"`, []Policy{per("a", 1, "b"), per("b", 1, "c"), per("c", 1, "b")}},
		{"a loop longer than the levels", "policies[0].parent", "want no loop", []Policy{
			per("a", 1, "b"), per("b", 1, "c"), per("c", 1, "d"), per("d", 1, "e"), per("e", 1, "f"), per("f", 1, "a"),
		}},
		{"a pattern below a loop", "policies[0].parent", "want no loop", []Policy{per("a*", 1, "ab"), per("ab", 1, "ac"), per("ac", 1, "ab")}},
		{"five levels", "policies[4].parent", `policies[4].parent "4" is not allowed: want at most 4 levels, and this makes 5`, []Policy{
			per("1", 1, ""), per("2", 1, "1"), per("3", 1, "2"), per("4", 1, "3"), per("5", 1, "4"),
		}},
		{"five levels with a pattern", "policies[0].parent", "this makes 5", []Policy{
			per("*", 1, "4"), per("1", 1, ""), per("2", 1, "1"), per("3", 1, "2"), per("4", 1, "3"),
		}},
		{"a minimum above its own rate", "policies[1].minimum", "at most the policy's own rate of 1/s", []Policy{per("p", 9, ""), least(per("a", 1, "p"), 2, time.Second)}},
		{"a minimum above the parent's rate", "policies[0].minimum", `policies[0].minimum "61/m" is not allowed: want at most the rate of parent "p", 1/s`, []Policy{least(per("a", 9, "p"), 61, time.Minute), per("p", 1, "")}},
		{"a pattern's minimum above the parent's rate", "policies[0].minimum", "", []Policy{least(per("a*", 9, "p"), 2, time.Second), per("p", 1, "")}},
		{"minimums above the rate together", "policies[3].minimum", `policies[3].minimum "21/m" is not allowed: want no more, with the minimums of the other keys, than the rate of parent "p", 1/s`, []Policy{
			per("p", 1, ""), least(per("a", 1, "p"), 20, time.Minute), least(per("b", 1, "p"), 20, time.Minute), least(per("c", 1, "p"), 21, time.Minute),
		}},
	} {
		err := validateSet(c.set)
		refuses(t, err, c.field, c.name)
		require.ErrorContains(t, err, c.want, c.name)
	}
}

// Any accepted set leads from each policy, over exact policies of the set alone, to
// one without a parent, in at most MaxLevels levels; and none is refused that does.
func TestSetsAreAcceptedIfAllParentsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := []string{"a", "b", "c", "d", "e", "f", "a*", "*"}
		parents := rapid.SampledFrom([]string{"", "", "a", "b", "c", "d", "e", "f"})
		set := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Policy {
			return per(rapid.SampledFrom(keys).Draw(t, "key"), 1, parents.Draw(t, "parent"))
		}), 0, len(keys), func(p Policy) string { return p.Key }).Draw(t, "set")

		ends := func(p Policy) bool {
			for range MaxLevels {
				if p.Parent == "" {
					return true
				}
				above, found := Policy{}, false
				for _, q := range set {
					if q.Key == p.Parent {
						above, found = q, true
					}
				}
				if !found {
					return false
				}
				p = above
			}
			return false
		}
		all := true
		for _, p := range set {
			all = all && ends(p)
		}
		err := validateSet(set)
		require.Equal(t, all, err == nil, "%v", err)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
		}
	})
}

// A long chain is refused after one walk, and many children are added up once.
func TestLargeSetsAreCheckedInTime(t *testing.T) {
	const n = 20_000
	chain, children := []Policy{per("0", 1, "")}, []Policy{per("p", n, "")}
	for i := 1; i < n; i++ {
		chain = append(chain, per(fmt.Sprint(i), 1, fmt.Sprint(i-1)))
		children = append(children, least(per(fmt.Sprint(i), 1, "p"), 1, time.Second))
	}
	begin := time.Now()
	refuses(t, validateSet(chain), "policies[4].parent")
	chain[0].Parent = fmt.Sprint(n - 1)
	refuses(t, validateSet(chain), "policies[0].parent")
	require.NoError(t, validateSet(children))
	require.Less(t, time.Since(begin), 20*time.Second)
}
