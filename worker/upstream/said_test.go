package upstream_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones, whether or not the machine has them

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/worker/upstream"
)

const day = 24 * time.Hour

// now is half a minute before the instant that the documentation of Retry-After is
// fond of.
var now = time.Date(2015, 10, 21, 7, 27, 30, 0, time.UTC)

// header reads lines of "name: value".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		h.Add(name, value)
	}
	return h
}

// nothing is what an answer says that says nothing.
var nothing = upstream.Said{Remaining: -1}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1":                              time.Second,
		"120":                            2 * time.Minute,
		" 120 ":                          2 * time.Minute,
		"000000000000000000000000000120": 2 * time.Minute,
		"86400":                          day,
		"86401":                          day,
		"9223372036":                     day, // the last whole second of a time.Duration
		"9223372037":                     day,
		"9223372036854775807":            day, // of an int64
		"9223372036854775808":            day,
		strings.Repeat("9", 30):          day,
		"9223372036854775807.5":          day,

		"1.5":                    2 * time.Second,
		"2.0":                    2 * time.Second,
		"0.001":                  time.Second,
		"1.00000000000000000001": 2 * time.Second,
		"1.5.5":                  0,
		".5":                     0,
		"1.":                     0,

		"Wed, 21 Oct 2015 07:28:00 GMT":      30 * time.Second,
		"Wednesday, 21-Oct-15 07:28:00 GMT":  30 * time.Second,
		"Wed Oct 21 07:28:00 2015":           30 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT":      day,
		"Friday, 21-Oct-16 07:28:00 GMT":     day,
		"Tuesday, 21-Oct-69 07:28:00 GMT":    0, // 2069 is more than 50 years ahead
		"Wednesday, 21-Oct-65 07:27:00 GMT":  day,
		"Wednesday, 21-Oct-66 07:27:00 GMT":  0,
		"Wed, 21 Oct 2015 07:27:30 GMT":      0,
		"Wed, 21 Oct 2015 07:27:29 GMT":      0,
		"Thu, 01 Jan 1970 00:00:00 GMT":      0,
		"Sat, 01 Jan 0000 00:00:00 GMT":      0,
		"Wed, 21 Oct 2015 07:28:00 CET":      0,
		"2015-10-21T07:28:00Z":               0,
		"Wednesday, 21-Oct-15 09:28:00 CEST": 0,
		"Wednesday, 21-Oct-15 07:28:00 UTC":  0,

		"":      0,
		"0":     0,
		"0.0":   0,
		"-1":    0,
		"+5":    0,
		"1e3":   0,
		"0x10":  0,
		"5s":    0,
		"5, 5":  0,
		"NaN":   0,
		"Inf":   0,
		"٣":     0, // a digit, elsewhere
		"soon":  0,
		"1 000": 0,
	} {
		t.Run(value, func(t *testing.T) {
			h := http.Header{"Retry-After": {value}}
			want := upstream.Said{Refused: true, RetryAfter: want, Remaining: -1}
			require.Equal(t, want, upstream.Read(429, h, now, day), "429")
			want.Refused = want.RetryAfter > 0
			require.Equal(t, want, upstream.Read(503, h, now, day), "503")
			require.Equal(t, want, upstream.Read(403, h, now, day), "403")
			want.Refused = false
			require.Equal(t, want, upstream.Read(500, h, now, day), "500")
		})
	}
}

// With a year of two digits the century is the one that fits the present.
func TestYearOfTwoDigits(t *testing.T) {
	at := time.Date(2069, 3, 1, 12, 0, 0, 0, time.UTC)
	h := header("Retry-After: Friday, 01-Mar-69 12:00:10 GMT")
	require.Equal(t, 10*time.Second, upstream.Read(429, h, at, day).RetryAfter)
}

// In London, where GMT is not the time of the whole year, it was an hour longer.
func TestTheZoneOfThisMachineDoesNotMatter(t *testing.T) {
	was := time.Local
	t.Cleanup(func() { time.Local = was })
	for _, name := range []string{"Europe/London", "Europe/Paris", "America/New_York", "UTC"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		time.Local = zone
		t.Run(name, func(t *testing.T) {
			TestYearOfTwoDigits(t)
			TestRetryAfter(t)
		})
	}
}

func TestRetryAfterIsBounded(t *testing.T) {
	h := header("Retry-After: 120")
	for most, want := range map[time.Duration]time.Duration{
		time.Hour: 2 * time.Minute, time.Minute: time.Minute, 1: 1, 0: 0, -time.Second: 0,
	} {
		require.Equal(t, want, upstream.Read(429, h, now, most).RetryAfter, "most %v", most)
	}
	require.True(t, upstream.Read(503, h, now, 0).Refused, "the answer has a usable one, whatever the bound")
}

func TestInstantsCountFromTheDateOfTheAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		date string
		want time.Duration
	}{
		"none":                       {"", 30 * time.Second},
		"the same clock":             {"Wed, 21 Oct 2015 07:27:30 GMT", 30 * time.Second},
		"a clock that is ahead":      {"Wed, 21 Oct 2015 07:27:50 GMT", 10 * time.Second},
		"a clock that is behind":     {"Wed, 21 Oct 2015 06:28:00 GMT", time.Hour},
		"a clock that is past it":    {"Wed, 21 Oct 2015 07:28:00 GMT", 0},
		"the other side of midnight": {"Tue, 20 Oct 2015 19:28:00 GMT", 12 * time.Hour},
		"no clock":                   {"Thu, 01 Jan 1970 00:00:00 GMT", 30 * time.Second},
		"another century":            {"Wed, 21 Oct 2115 07:28:00 GMT", 30 * time.Second},
		"garbage":                    {"today", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			for _, told := range []string{
				"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", "X-RateLimit-Reset: 1445412480", "X-RateLimit-Reset: 1445412480000",
			} {
				h := header(told, "Date: "+tc.date)
				require.Equal(t, tc.want, upstream.Read(429, h, now, day).RetryAfter, told)
			}
		})
	}
}

// What a Retry-After is about depends on the answer.
func TestRetryAfterOfOtherAnswers(t *testing.T) {
	h := header("Retry-After: 5")
	spent := header("Retry-After: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 60")
	for _, status := range []int{200, 202, 301, 400, 404, 409, 413} {
		require.Equal(t, nothing, upstream.Read(status, h, now, day), "%d: when to ask again for this one", status)
		said := upstream.Read(status, spent, now, day)
		require.Equal(t, 5*time.Second, said.RetryAfter, "%d: nothing is left, and this is the better word", status)
		require.False(t, said.Refused, "%d", status)
	}
	for _, status := range []int{500, 502, 504, 529} {
		said := upstream.Read(status, h, now, day)
		require.Equal(t, 5*time.Second, said.RetryAfter, "%d", status)
		require.False(t, said.Refused, "%d: it failed, and was not over a limit", status)
	}
}

func TestReset(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1445412480":                    30 * time.Second, // seconds since 1970
		"1445412480.5":                  30*time.Second + 500*time.Millisecond,
		"1445412480000":                 30 * time.Second, // milliseconds
		"1445412480123":                 30*time.Second + 123*time.Millisecond,
		"1445412449":                    0, // a second ago
		"1445412449999":                 0,
		"30":                            30 * time.Second, // from now
		"0.25":                          250 * time.Millisecond,
		"3600":                          time.Hour,
		"2592000":                       30 * day,
		"700000000":                     700_000_000 * time.Second,
		"730000000":                     0, // from here on an instant, in 1993
		"6m0s":                          6 * time.Minute,
		"20ms":                          20 * time.Millisecond,
		"1h2m3.5s":                      time.Hour + 2*time.Minute + 3500*time.Millisecond,
		"-5s":                           0,
		"Wed, 21 Oct 2015 07:28:00 GMT": 30 * time.Second,
		"2015-10-21T07:28:00Z":          30 * time.Second,
		"2015-10-21T09:28:00+02:00":     30 * time.Second,
		"9223372036854775807":           1<<63 - 1,
		strings.Repeat("9", 30):         1<<63 - 1,
		"0":                             0,
		"-1":                            0,
		"":                              0,
		"soon":                          0,
	} {
		t.Run(value, func(t *testing.T) {
			want := upstream.Said{Limit: 60, Remaining: 0, Reset: want, RetryAfter: min(want, day)}
			for _, d := range []struct{ limit, remaining, reset string }{
				{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
				{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
				{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"},
				{"x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"},
				{"anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"},
			} {
				h := header(d.limit+": 60", d.remaining+": 0", d.reset+": "+value)
				require.Equal(t, want, upstream.Read(200, h, now, day), d.limit)
			}
		})
	}
}

// A clock that was never set takes no number of seconds for an instant.
func TestResetWithoutAClock(t *testing.T) {
	h := header("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 30")
	for _, at := range []time.Time{{}, time.Unix(0, 0), time.Unix(100, 0)} {
		require.Equal(t, 30*time.Second, upstream.Read(200, h, at, day).Reset)
	}
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		lines  []string
		want   upstream.Said
	}{
		"nothing":                  {200, nil, nothing},
		"429 alone":                {429, nil, upstream.Said{Refused: true, Remaining: -1}},
		"503 alone":                {503, nil, nothing},
		"403 alone":                {403, nil, nothing},
		"500 with nothing left":    {500, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, upstream.Said{RetryAfter: 9 * time.Second, Reset: 9 * time.Second}},
		"503 with nothing left":    {503, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, upstream.Said{RetryAfter: 9 * time.Second, Reset: 9 * time.Second}},
		"nothing left, no reset":   {200, []string{"X-RateLimit-Remaining: 0"}, upstream.Said{}},
		"a reset alone":            {200, []string{"X-RateLimit-Reset: 9"}, upstream.Said{Remaining: -1, Reset: 9 * time.Second}},
		"429 and a reset":          {429, []string{"X-RateLimit-Reset: 9"}, upstream.Said{Refused: true, RetryAfter: 9 * time.Second, Remaining: -1, Reset: 9 * time.Second}},
		"429 with something left":  {429, []string{"X-RateLimit-Remaining: 7", "X-RateLimit-Reset: 9"}, upstream.Said{Refused: true, Remaining: 7, Reset: 9 * time.Second}},
		"Retry-After first":        {429, []string{"Retry-After: 3", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, upstream.Said{Refused: true, RetryAfter: 3 * time.Second, Reset: 9 * time.Second}},
		"an unusable Retry-After":  {429, []string{"Retry-After: 0", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, upstream.Said{Refused: true, RetryAfter: 9 * time.Second, Reset: 9 * time.Second}},
		"Retry-After always there": {200, []string{"Retry-After: 2", "X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 7"}, upstream.Said{Limit: 20, Remaining: 7}},

		"GitHub, primary": {
			403, []string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1445414400"},
			upstream.Said{Refused: true, RetryAfter: 1950 * time.Second, Limit: 60, Reset: 1950 * time.Second},
		},
		"GitHub, secondary": {
			403, []string{"Retry-After: 60", "X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 4990", "X-RateLimit-Reset: 1445414400"},
			upstream.Said{Refused: true, RetryAfter: time.Minute, Limit: 5000, Remaining: 4990, Reset: 1950 * time.Second},
		},
		"GitHub, forbidden": {
			403, []string{"X-RateLimit-Limit: 5000", "X-RateLimit-Remaining: 4990", "X-RateLimit-Reset: 1445414400"},
			upstream.Said{Limit: 5000, Remaining: 4990, Reset: 1950 * time.Second},
		},
		"OpenAI": {
			200, []string{
				"x-ratelimit-limit-requests: 60", "x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-requests: 59",
				"x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-requests: 1s", "x-ratelimit-reset-tokens: 6m0s",
			},
			upstream.Said{Limit: 60, Remaining: 59, Reset: time.Second},
		},
		"Azure, unknown":   {200, []string{"x-ratelimit-limit-requests: -1", "x-ratelimit-remaining-requests: -1"}, nothing},
		"Docker Hub":       {200, []string{"ratelimit-limit: 100;w=21600", "ratelimit-remaining: 76;w=21600"}, upstream.Said{Limit: 100, Window: 6 * time.Hour, Remaining: 76}},
		"Klaviyo":          {200, []string{"RateLimit-Limit: 3, 3;w=1, 60;w=60", "RateLimit-Remaining: 2", "RateLimit-Reset: 1"}, upstream.Said{Limit: 3, Window: time.Second, Remaining: 2, Reset: time.Second}},
		"Shopify":          {200, []string{"X-Shopify-Shop-Api-Call-Limit: 32/40"}, upstream.Said{Limit: 40, Remaining: 8}},
		"Shopify, refused": {429, []string{"X-Shopify-Shop-Api-Call-Limit: 40/40", "Retry-After: 2.0"}, upstream.Said{Refused: true, RetryAfter: 2 * time.Second, Limit: 40}},
		"Shopify, over":    {200, []string{"X-Shopify-Shop-Api-Call-Limit: 41/40"}, upstream.Said{Limit: 40}},
		"Shopify, garbage": {200, []string{"X-Shopify-Shop-Api-Call-Limit: 32"}, nothing},
		"no numbers":       {200, []string{"X-RateLimit-Limit: unlimited", "X-RateLimit-Remaining: many", "X-RateLimit-Reset: never"}, nothing},
		"a huge limit":     {200, []string{"X-RateLimit-Limit: " + strings.Repeat("9", 30)}, upstream.Said{Limit: 1<<63 - 1, Remaining: -1}},

		"draft": {
			200, []string{`RateLimit-Policy: "default";q=100;w=60`, `RateLimit: "default";r=50;t=30`},
			upstream.Said{Limit: 100, Window: time.Minute, Remaining: 50, Reset: 30 * time.Second},
		},
		"draft, refused": {
			429, []string{`RateLimit-Policy: "default";q=100;w=60`, `RateLimit: "default";r=0;t=30`},
			upstream.Said{Refused: true, RetryAfter: 30 * time.Second, Limit: 100, Window: time.Minute, Reset: 30 * time.Second},
		},
		"draft, several policies": {
			200, []string{`RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400`, `RateLimit: "burst";r=50;t=30`, `RateLimit: "daily";r=3;t=3600`},
			upstream.Said{Limit: 1000, Window: day, Remaining: 3, Reset: time.Hour},
		},
		"draft, two spent": {
			200, []string{`RateLimit: "a";r=0;t=30, "b";r=0;t=90, "c";r=0;t=60`},
			upstream.Said{RetryAfter: 90 * time.Second, Reset: 90 * time.Second},
		},
		"draft, tokens for names": {
			200, []string{`RateLimit-Policy: default;q=10;w=1;qu="requests"`, `RateLimit: default;r=4;t=1`},
			upstream.Said{Limit: 10, Window: time.Second, Remaining: 4, Reset: time.Second},
		},
		"draft, a partition": {
			200, []string{`RateLimit-Policy: "p";q=5;w=900;pk=:cHVibGlj:`, `RateLimit: "p";r=4;t=900;pk=:cHVibGlj:`},
			upstream.Said{Limit: 5, Window: 15 * time.Minute, Remaining: 4, Reset: 15 * time.Minute},
		},
		"draft, bytes": {
			200, []string{`RateLimit-Policy: "size";q=1000;w=60;qu="content-bytes", "calls";q=90;w=60`, `RateLimit: "size";r=2;t=9, "calls";r=80;t=50`},
			upstream.Said{Limit: 90, Window: time.Minute, Remaining: 80, Reset: 50 * time.Second},
		},
		"draft, no bytes left": {
			200, []string{`RateLimit-Policy: "size";q=1000;w=60;qu="content-bytes", "calls";q=90;w=60`, `RateLimit: "size";r=0;t=9, "calls";r=80;t=50`},
			upstream.Said{RetryAfter: 9 * time.Second, Reset: 9 * time.Second},
		},
		"draft, policies alone": {
			200, []string{`RateLimit-Policy: "second";q=10;w=1, "minute";q=100;w=60, "size";q=1;w=60;qu="content-bytes"`},
			upstream.Said{Limit: 100, Window: time.Minute, Remaining: -1},
		},
		"draft, no policy":         {200, []string{`RateLimit: "default";r=50;t=30`}, upstream.Said{Remaining: 50, Reset: 30 * time.Second}},
		"draft, wrong types":       {200, []string{`RateLimit: "a";r="5";t=1.5, "b";t=3, 5;r=1, ("c");r=0`}, nothing},
		"draft, less than nothing": {200, []string{`RateLimit: "a";r=-5;t=9`, `RateLimit-Policy: "a";q=-1;w=-1`}, nothing},
		"draft, a limit that a policy of bytes has too": {
			200, []string{`RateLimit-Policy: "size";q=60;w=1;qu="content-bytes"`, "RateLimit-Limit: 60"},
			upstream.Said{Limit: 60, Remaining: -1},
		},
		"draft, a negative policy":           {200, []string{"RateLimit-Policy: -1;w=60"}, nothing},
		"draft, neither a limit nor a quota": {200, []string{`RateLimit-Policy: "a";w=60`, "RateLimit: remaining=5"}, upstream.Said{Remaining: 5}},
		"draft, no structure":                {200, []string{`RateLimit: "default;r=50`, `RateLimit-Policy: ;;`}, nothing},
		"draft, version 7": {
			200, []string{`RateLimit-Policy: 100;w=60, 1000;w=3600`, `RateLimit: limit=100, remaining=0, reset=12`},
			upstream.Said{RetryAfter: 12 * time.Second, Limit: 100, Window: time.Minute, Reset: 12 * time.Second},
		},
		"draft, version 6": {
			200, []string{"RateLimit-Policy: 100;w=60, 1000;w=3600", "RateLimit-Limit: 1000", "RateLimit-Remaining: 7", "RateLimit-Reset: 12"},
			upstream.Said{Limit: 1000, Window: time.Hour, Remaining: 7, Reset: 12 * time.Second},
		},
		"one quota in two ways": {
			200, []string{`RateLimit-Policy: "default";q=100;w=60`, `RateLimit: "default";r=50;t=30`, "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 50", "X-RateLimit-Reset: 1445412481"},
			upstream.Said{Limit: 100, Window: time.Minute, Remaining: 50, Reset: 30 * time.Second},
		},
		"one quota in two ways, one without a reset": {
			429, []string{`RateLimit: "default";r=0`, "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 31"},
			upstream.Said{Refused: true, RetryAfter: 31 * time.Second, Limit: 100, Reset: 31 * time.Second},
		},
		"a gateway before the API": {
			200, []string{`RateLimit: "gateway";r=50;t=1`, "X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 31"},
			upstream.Said{RetryAfter: 31 * time.Second, Limit: 10, Reset: 31 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, upstream.Read(tc.status, header(tc.lines...), now, day))
		})
	}
}
