package provider_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest/provider"
)

func TestSettingsOutOfBounds(t *testing.T) {
	for _, tc := range []struct {
		b    provider.Behaviour
		want string
	}{
		{provider.Answer{Status: 99}, "status 99 is not allowed: want 200 to 599, or 0 for the default"},
		{provider.Quota{Window: time.Second}, "limit 0 is not allowed: want at least 1 call"},
		{provider.Quota{Limit: 1}, "window 0s is not allowed: want 1ms to 8784h0m0s"},
		{provider.Quota{Limit: 1, Window: math.MaxInt64}, "window 2562047h47m16.854775807s is not allowed: want 1ms to 8784h0m0s"},
		{provider.Quota{Limit: 1, Window: time.Second, Dialect: 5}, "dialect 5 is not allowed: want None, Epoch, EpochMillis, Delta or IETF"},
		{provider.Quota{Limit: 1, Window: time.Second, RetryAfter: -1}, "retry_after -1 is not allowed: want Seconds, Date or Absent"},
		{provider.Quota{Limit: 1, Window: time.Second, Status: 600}, "status 600 is not allowed: want 200 to 599, or 0 for the default"},
		{
			provider.Quota{Limit: 1, Window: time.Second, Next: provider.Slow{Next: provider.Flaky{Every: -1}}},
			"next.next.every -1 is not allowed: want at least 1, or 0 to fail by ratio",
		},
		{provider.Bucket{Limit: throttle.Limit{Rate: 1, Period: time.Second}}, "burst 0 is not allowed: want 1 to 1000000000"},
		{provider.Bucket{RetryAfter: time.Millisecond}, "retry_after 1ms is not allowed: want whole tenths of a second, or 0 for 2s"},
		{provider.Slow{Delay: -1}, "delay -1ns is not allowed: want a duration that is not negative"},
		{provider.Flaky{Ratio: 1.1}, "ratio 1.1 is not allowed: want 0 to 1"},
		{provider.Flaky{Ratio: math.NaN()}, "ratio NaN is not allowed: want 0 to 1"},
		{provider.Flaky{Every: 2, Ratio: 0.5}, "ratio 0.5 is not allowed: want 0 beside every: only one of the two"},
		{provider.Flaky{Status: 1}, "status 1 is not allowed: want 200 to 599, or 0 for the default"},
		{provider.Large{Bytes: -1}, "bytes -1 is not allowed: want at least 1, or 0 for no end"},
		{provider.Large{HeaderBytes: -1}, "header_bytes -1 is not allowed: want at least 1, or 0 for no header"},
		{provider.Trickle{}, "every 0s is not allowed: want a positive duration"},
		{provider.Trickle{Bytes: -1, Every: 1}, "bytes -1 is not allowed: want at least 1, or 0 for no end"},
		{provider.Redirect{Status: 200}, "status 200 is not allowed: want 300 to 399, or 0 for 302"},
	} {
		_, err := tc.b.Handler()
		require.EqualError(t, err, tc.want)
		require.ErrorIs(t, err, throttle.ErrInvalid)
	}
}

func TestAnswer(t *testing.T) {
	s := provider.Start(t, provider.Answer{Status: 418, Header: http.Header{"x-kind": {"pot"}}, Body: "tea"})
	status, h, body := post(t, newClient(t), s.URL)
	require.Equal(t, 418, status)
	require.Equal(t, "pot", h.Get("X-Kind"))
	require.Equal(t, "tea", body)
}

func TestSlow(t *testing.T) {
	s := provider.Start(t, provider.Slow{Delay: 30 * time.Millisecond, Next: provider.Answer{Status: 201}})
	began := time.Now()
	status, _, _ := post(t, newClient(t), s.URL)
	require.Equal(t, 201, status)
	require.GreaterOrEqual(t, time.Since(began), 30*time.Millisecond)
}

// Whoever goes is not waited for, and a server that closes waits for nobody.
func TestEndsWhenTheCallerGoes(t *testing.T) {
	for name, b := range map[string]provider.Behaviour{
		"slow":    provider.Slow{Delay: time.Hour},
		"trickle": provider.Trickle{Every: time.Millisecond},
		"endless": provider.Large{},
	} {
		t.Run(name, func(t *testing.T) {
			s := provider.Start(t, b)
			leave(t, newClient(t), s)
			if name == "slow" {
				require.Zero(t, s.Calls()[0].Status, "never answered")
			}
		})
		t.Run(name+", server first", func(t *testing.T) {
			client := newClient(t)
			done := make(chan struct{})
			t.Run("", func(t *testing.T) {
				s := provider.Start(t, b)
				go func() {
					defer close(done)
					resp, err := client.Post(s.URL, "", nil)
					if err == nil { // not read: the server has to get out of a write that stands
						<-t.Context().Done()
						_ = resp.Body.Close()
					}
				}()
				require.Eventually(t, func() bool { return s.Count() == 1 }, patience, time.Millisecond)
			})
			select {
			case <-done:
			case <-time.After(patience):
				require.Fail(t, "the call did not end with the server")
			}
		})
	}
}

func TestLarge(t *testing.T) {
	const size = 1<<20 + 1
	s := provider.Start(t, provider.Large{Bytes: size, HeaderBytes: 1000, Status: 500})
	status, h, body := post(t, newClient(t), s.URL)
	require.Equal(t, 500, status)
	require.Equal(t, "1048577", h.Get("Content-Length"))
	require.Len(t, h.Get("X-Filler"), 1000)
	require.Len(t, body, size)
}

func TestTrickle(t *testing.T) {
	s := provider.Start(t, provider.Trickle{Bytes: 5, Every: 5 * time.Millisecond})
	began := time.Now()
	status, _, body := post(t, newClient(t), s.URL)
	require.Equal(t, 200, status)
	require.Equal(t, "xxxxx", body)
	require.GreaterOrEqual(t, time.Since(began), 25*time.Millisecond)
}

func TestRedirect(t *testing.T) {
	client := newClient(t)
	for name, tc := range map[string]struct {
		b      provider.Redirect
		status int
		to     string
	}{
		"to itself": {provider.Redirect{}, 302, "/a?b=c"},
		"elsewhere": {provider.Redirect{To: "https://example.com/x", Status: 307}, 307, "https://example.com/x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := provider.Start(t, tc.b)
			status, h, _ := post(t, client, s.URL+"/a?b=c")
			require.Equal(t, tc.status, status)
			require.Equal(t, tc.to, h.Get("Location"))
		})
	}
}

func TestFlakyEveryNth(t *testing.T) {
	s := provider.Start(t, provider.Flaky{Every: 3})
	require.Equal(t, []int{200, 200, 500, 200, 200, 500}, statuses(t, s, 6))
	require.Zero(t, s.Refusals(), "failed, and over no limit")
	require.Len(t, s.Accepted("/"), 6)
}

func TestFlakyByRatio(t *testing.T) {
	first := statuses(t, provider.Start(t, provider.Flaky{Ratio: 0.3, Seed: 7, Status: 502}), 200)
	require.Equal(t, first, statuses(t, provider.Start(t, provider.Flaky{Ratio: 0.3, Seed: 7, Status: 502}), 200))
	require.NotEqual(t, first, statuses(t, provider.Start(t, provider.Flaky{Ratio: 0.3, Seed: 8, Status: 502}), 200))
	failed := 0
	for _, s := range first {
		if s == 502 {
			failed++
		}
	}
	require.InDelta(t, 60, failed, 20)
	require.NotContains(t, statuses(t, provider.Start(t, provider.Flaky{}), 20), 500)
	require.NotContains(t, statuses(t, provider.Start(t, provider.Flaky{Ratio: 1}), 20), 200)
}

// statuses makes n calls, one after the other.
func statuses(t *testing.T, s *provider.Server, n int) []int {
	t.Helper()
	client := newClient(t)
	all := make([]int, n)
	for i := range all {
		all[i], _, _ = post(t, client, s.URL+"/")
	}
	return all
}
