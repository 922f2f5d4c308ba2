package upstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/worker/upstream"
)

func FuzzRead(f *testing.F) {
	for _, lines := range []string{
		"",
		"Retry-After: 120\nDate: Wed, 21 Oct 2015 07:27:30 GMT",
		"Retry-After: 9223372036854775808",
		"Retry-After: 1.5",
		"Retry-After: Friday, 31-Dec-99 23:59:59 GMT",
		"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
		"X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1445412480000",
		"X-Rate-Limit-Limit: 60\nX-Rate-Limit-Remaining: 0\nX-Rate-Limit-Reset: 2015-10-21T07:28:00Z",
		"x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 6m0s",
		"RateLimit-Policy: \"a\";q=100;w=60;qu=\"content-bytes\"\nRateLimit: \"a\";r=0;t=999999999999999",
		"RateLimit-Policy: 100;w=60\nRateLimit: limit=100, remaining=0, reset=12",
		"RateLimit-Limit: 100, 100;w=60\nRateLimit-Remaining: 0\nRateLimit-Reset: 9",
		"X-Shopify-Shop-Api-Call-Limit: 40/40",
	} {
		f.Add(429, lines, now.Unix(), int64(day))
		f.Add(200, lines, int64(0), int64(-1))
	}
	f.Fuzz(func(t *testing.T, status int, lines string, at, most int64) {
		h, bound := header(strings.Split(lines, "\n")...), time.Duration(most)
		said := upstream.Read(status, h, time.Unix(at, 0), bound)
		require.GreaterOrEqual(t, said.RetryAfter, time.Duration(0))
		require.LessOrEqual(t, said.RetryAfter, max(0, bound))
		require.GreaterOrEqual(t, said.Limit, int64(0))
		require.GreaterOrEqual(t, said.Remaining, int64(-1))
		require.GreaterOrEqual(t, said.Window, time.Duration(0))
		require.GreaterOrEqual(t, said.Reset, time.Duration(0))
		if status == 429 {
			require.True(t, said.Refused)
		}
		require.Equal(t, said, upstream.Read(status, h, time.Unix(at, 0), bound), "it depends on nothing else")
	})
}
