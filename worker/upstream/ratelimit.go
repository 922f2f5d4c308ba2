package upstream

import (
	"cmp"
	"slices"
	"time"

	"github.com/dunglas/httpsfv"
)

// A policy is a member of RateLimit-Policy, in the present form of the draft
// ("minute";q=100;w=60) or in the one up to version 7 (100;w=60), which has no name.
type policy struct {
	name   string
	quota  int64
	window time.Duration // 0: not told
	calls  bool          // that calls are counted, not bytes or something else
}

func readPolicies(values []string) []policy {
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		return nil
	}
	var all []policy
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		if !ok {
			continue
		}
		p := policy{calls: true}
		if q, ok := item.Value.(int64); ok {
			p.quota = max(0, q)
		} else if p.name, ok = name(item.Value); ok {
			p.quota, _ = parameter(item, "q")
		} else {
			continue
		}
		w, _ := parameter(item, "w")
		p.window = number{whole: w}.seconds()
		if unit, ok := item.Params.Get("qu"); ok {
			u, _ := name(unit)
			p.calls = u == "requests"
		}
		all = append(all, p)
	}
	return all
}

// strictest is the policy that allows the fewest calls in the long run.
func strictest(policies []policy) (policy, bool) {
	policies = slices.DeleteFunc(slices.Clone(policies), func(p policy) bool { return !p.calls || p.quota == 0 })
	if len(policies) == 0 {
		return policy{}, false
	}
	return slices.MinFunc(policies, func(a, b policy) int {
		return cmp.Compare(float64(a.quota)*float64(b.window), float64(b.quota)*float64(a.window))
	}), true
}

// rateLimits reads RateLimit. Of policies with the same number of calls remaining, the
// one that takes longest to reset stands first.
func rateLimits(values []string, policies []policy) []quota {
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		return oldRateLimit(values, policies)
	}
	var all []quota
	for _, m := range list {
		item, ok := m.(httpsfv.Item)
		if !ok {
			continue
		}
		called, ok := name(item.Value)
		if !ok {
			continue
		}
		if q, ok := remaining(item, find(policies, func(p policy) bool { return p.name == called })); ok {
			all = append(all, q)
		}
	}
	slices.SortStableFunc(all, func(a, b quota) int {
		return cmp.Or(cmp.Compare(a.left(), b.left()), cmp.Compare(b.reset, a.reset))
	})
	return all
}

// remaining reads one member of RateLimit. Of a policy that does not count calls it
// only matters that nothing is left.
func remaining(item httpsfv.Item, p policy) (quota, bool) {
	left, ok := parameter(item, "r")
	if !ok {
		return quota{}, false
	}
	t, _ := parameter(item, "t")
	q := quota{limit: p.quota, window: p.window, remaining: left, reset: number{whole: t}.seconds()}
	if !p.calls {
		q.limit, q.window = 0, 0
	}
	return q, p.calls || left == 0
}

// oldRateLimit reads the dictionary of version 7: limit=100, remaining=50, reset=30.
func oldRateLimit(values []string, policies []policy) []quota {
	fields, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return nil
	}
	get := func(field string, otherwise int64) int64 {
		m, ok := fields.Get(field)
		if !ok {
			return otherwise
		}
		item, ok := m.(httpsfv.Item)
		if !ok {
			return otherwise
		}
		return natural(item.Value, otherwise)
	}
	q := quota{limit: get("limit", 0), remaining: get("remaining", unknown), reset: number{whole: get("reset", 0)}.seconds()}
	q.window = find(policies, func(p policy) bool { return q.limit > 0 && p.quota == q.limit }).window
	return []quota{q}
}

// find is the first policy that fits, or one of which nothing is known.
func find(policies []policy, fits func(policy) bool) policy {
	if i := slices.IndexFunc(policies, fits); i >= 0 {
		return policies[i]
	}
	return policy{calls: true}
}

// name reads a string, or a token in its place.
func name(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case httpsfv.Token:
		return string(v), true
	}
	return "", false
}

// parameter reads a whole number that is not negative; 0 and false if there is none.
func parameter(item httpsfv.Item, name string) (int64, bool) {
	v, ok := item.Params.Get(name)
	if !ok {
		return 0, false
	}
	n := natural(v, unknown)
	return max(0, n), n != unknown
}

func natural(value any, otherwise int64) int64 {
	if n, ok := value.(int64); ok && n >= 0 {
		return n
	}
	return otherwise
}
