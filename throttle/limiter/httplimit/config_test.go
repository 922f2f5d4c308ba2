package httplimit_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
)

func TestNewRefusesWhatIsOutOfBounds(t *testing.T) {
	t.Parallel()
	l := inMemory(t, 0, limiter.FixedWindow(10, time.Minute))
	for _, tt := range []struct {
		config httplimit.Config
		text   string
	}{
		{httplimit.Config{OnError: httplimit.FailOpen}, `limiter "nil" is not allowed: want a limiter made by limiter.New`},
		{httplimit.Config{Limiter: l}, "on_error 0 is not allowed: want FailOpen or FailClosed, which has no default"},
		{httplimit.Config{Limiter: l, OnError: 3}, "on_error 3 is not allowed: want FailOpen or FailClosed, which has no default"},
		{httplimit.Config{Limiter: l, OnError: httplimit.FailOpen, IPv6Prefix: 31}, "ipv6_prefix 31 is not allowed: want 32 to 128 bits"},
		{httplimit.Config{Limiter: l, OnError: httplimit.FailOpen, IPv6Prefix: 129}, "ipv6_prefix 129 is not allowed: want 32 to 128 bits"},
		{httplimit.Config{Limiter: l, OnError: httplimit.FailOpen, Timeout: time.Microsecond}, "timeout 1µs is not allowed: want 1ms to 1m0s"},
		{httplimit.Config{Limiter: l, OnError: httplimit.FailOpen, MaxCalls: -1}, "max_calls -1 is not allowed: want 1 to 65536"},
		{
			httplimit.Config{Limiter: l, OnError: httplimit.FailOpen, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), {}}},
			"trusted_proxies[1] invalid Prefix is not allowed: want an IP prefix of at least 1 bit, as 10.0.0.0/8",
		},
		{
			httplimit.Config{Limiter: l, OnError: httplimit.FailOpen, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
			"trusted_proxies[0] 0.0.0.0/0 is not allowed: want an IP prefix of at least 1 bit, as 10.0.0.0/8",
		},
	} {
		m, err := httplimit.New(tt.config)
		require.EqualError(t, err, tt.text)
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.Nil(t, m)
	}
}
