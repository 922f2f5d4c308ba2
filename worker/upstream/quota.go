package upstream

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// unknown is a Remaining that is not told.
const unknown = -1

// A quota is what one set of headers tells, see [Said].
type quota struct {
	limit     int64
	window    time.Duration
	remaining int64
	reset     time.Duration
}

// least finds the quota with the least remaining. Those where it is unknown come
// last. Of equals the first counts that has a reset: one and the same quota may be told
// in several ways, and without a reset nobody knows when to come back.
func least(all []quota) (quota, bool) {
	if len(all) == 0 {
		return quota{}, false
	}
	return slices.MinFunc(all, func(a, b quota) int {
		return cmp.Or(cmp.Compare(a.left(), b.left()), cmp.Compare(min(1, b.reset), min(1, a.reset)))
	}), true
}

func (q quota) left() int64 {
	if q.remaining == unknown {
		return math.MaxInt64
	}
	return q.remaining
}

// A dialect is a set of headers with a value each.
type dialect struct{ limit, remaining, reset string }

// dialects stand in the order of preference, those first that are defined best.
var dialects = []dialect{
	{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}, // the draft up to version 6
	{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
	{"X-RateLimit-Limit-Requests", "X-RateLimit-Remaining-Requests", "X-RateLimit-Reset-Requests"}, // OpenAI, Groq
	{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},                         // X, Okta
	{"Anthropic-RateLimit-Requests-Limit", "Anthropic-RateLimit-Requests-Remaining", "Anthropic-RateLimit-Requests-Reset"},
}

// quotas reads all that are told, in the order of preference.
func quotas(h http.Header, sent time.Time) []quota {
	policies := readPolicies(h.Values("RateLimit-Policy"))
	all := rateLimits(h.Values("RateLimit"), policies)
	for _, d := range dialects {
		q := quota{remaining: count(h.Get(d.remaining), unknown), reset: parseReset(h.Get(d.reset), sent)}
		q.limit, q.window = d.limits(h, policies)
		all = append(all, q)
	}
	all = append(all, shopify(h.Get("X-Shopify-Shop-Api-Call-Limit")))
	all = slices.DeleteFunc(all, func(q quota) bool { return q == quota{remaining: unknown} })
	if p, ok := strictest(policies); ok && len(all) == 0 {
		all = append(all, quota{limit: p.quota, window: p.window, remaining: unknown})
	}
	return all
}

// limits reads a limit that may have its window beside it, as in "100;w=60", or after
// it, as in "100, 100;w=60, 5000;w=3600".
func (d dialect) limits(h http.Header, policies []policy) (limit int64, window time.Duration) {
	limit = count(h.Get(d.limit), 0)
	if limit == 0 {
		return 0, 0
	}
	for _, p := range slices.Concat(readPolicies(h.Values(d.limit)), policies) {
		if p.quota == limit && p.window > 0 && p.calls {
			return limit, p.window
		}
	}
	return limit, 0
}

// count reads a number of calls, of a list the first, without parameters.
func count(s string, otherwise int64) int64 {
	if i := strings.IndexAny(s, ",;"); i >= 0 {
		s = s[:i]
	}
	n, ok := parseNumber(strings.TrimSpace(s))
	if !ok { // also a negative one, which Azure has for unknown
		return otherwise
	}
	return n.whole
}

// shopify reads what stands in the bucket of a shop and what fits in, as in "32/40".
func shopify(s string) quota {
	used, size, ok := strings.Cut(s, "/")
	u, limit := count(used, unknown), count(size, 0)
	if !ok || u == unknown || limit == 0 {
		return quota{remaining: unknown}
	}
	return quota{limit: limit, remaining: max(0, limit-u)}
}
