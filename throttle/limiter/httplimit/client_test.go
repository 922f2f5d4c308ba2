package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
)

// SHA-256 of "secret" and "alice", the first 16 bytes.
const (
	hashOfSecret = "2bb80d537b1da3e38bd30361aa855686"
	hashOfAlice  = "2bd806c97f0e00af1a1fc3328fa763a9"
)

func TestAClientIsItsAPIKeyElseItsUserElseItsAddress(t *testing.T) {
	t.Parallel()
	config := httplimit.Config{
		Limiter: inMemory(t, 0, limiter.FixedWindow(10, time.Minute)),
		APIKey:  httplimit.APIKeyHeader("X-API-Key"),
		User:    func(r *http.Request) string { user, _, _ := r.BasicAuth(); return user },
	}
	bearer := config
	bearer.APIKey = httplimit.BearerToken
	byHeader, byBearer := middleware(t, config), middleware(t, bearer)

	for _, tt := range []struct {
		name string
		m    *httplimit.Middleware
		key  string
		auth string
		want string
	}{
		{"API key", byHeader, "secret", "", "key:" + hashOfSecret},
		{"API key before user", byHeader, "secret", "Basic YWxpY2U6cHc=", "key:" + hashOfSecret},
		{"user before address", byHeader, "", "Basic YWxpY2U6cHc=", "user:" + hashOfAlice},
		{"address", byHeader, "", "", "ip:192.0.2.1"},
		{"bearer token", byBearer, "", "Bearer secret", "key:" + hashOfSecret},
		{"the scheme is in any case", byBearer, "", "bEARER  secret ", "key:" + hashOfSecret},
		{"no bearer token", byBearer, "secret", "Basic YWxpY2U6cHc=", "user:" + hashOfAlice},
		{"empty bearer token", byBearer, "", "Bearer ", "ip:192.0.2.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("X-API-Key", tt.key)
			r.Header.Set("Authorization", tt.auth)
			require.Equal(t, tt.want, tt.m.ClientKey(r))
		})
	}
}

func TestAKeyOfOnesOwnComesBeforeAllElse(t *testing.T) {
	t.Parallel()
	m := middleware(t, httplimit.Config{
		Limiter: inMemory(t, 0, limiter.FixedWindow(1, time.Minute)),
		Key:     func(r *http.Request) string { return r.Header.Get("X-Tenant") },
		APIKey:  httplimit.APIKeyHeader("X-API-Key"),
	})
	for _, tt := range []struct{ tenant, key, want string }{
		{"alice", "secret", "own:" + hashOfAlice},
		{"alice", "", "own:" + hashOfAlice},
		{"", "secret", "key:" + hashOfSecret},
		{"", "", "ip:192.0.2.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Tenant", tt.tenant)
		r.Header.Set("X-API-Key", tt.key)
		require.Equal(t, tt.want, m.ClientKey(r))
	}

	s := serve(t, m.Handler(hello))
	for _, tenant := range []string{"a", "b"} {
		require.Equal(t, http.StatusOK, get(t, s, "/", "X-Tenant", tenant, "X-API-Key", "1").code)
		require.Equal(t, http.StatusTooManyRequests, get(t, s, "/", "X-Tenant", tenant, "X-API-Key", "2").code)
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestAddressOfAClient(t *testing.T) {
	t.Parallel()
	ten := prefixes("10.0.0.0/8", "fd00::/8")
	for _, tt := range []struct {
		name    string
		trusted []netip.Prefix
		bits    int
		peer    string
		lines   []string
		want    string
	}{
		{"the port is left out", nil, 0, "203.0.113.9:4711", nil, "203.0.113.9"},
		{"IPv6 is a /64", nil, 0, "[2001:db8:1:2:3:4:5:6]:4711", nil, "2001:db8:1:2::/64"},
		{"IPv6 of another length", nil, 56, "[2001:db8:1:2ff::6]:4711", nil, "2001:db8:1:200::/56"},
		{"IPv6 to the last bit", nil, 128, "[2001:db8::6]:4711", nil, "2001:db8::6/128"},
		{"IPv4 in IPv6", nil, 0, "[::ffff:203.0.113.9]:4711", nil, "203.0.113.9"},
		{"IPv4 behind a NAT64", nil, 0, "[64:ff9b::203.0.113.9]:4711", nil, "203.0.113.9"},
		{"IPv4 behind a NAT64, in hex", nil, 128, "[64:ff9b::cb00:7109]:4711", nil, "203.0.113.9"},
		{"no NAT64, but its neighbour", nil, 0, "[64:ff9b::1:cb00:7109]:4711", nil, "64:ff9b::/64"},
		{"the local prefix of NAT64", nil, 0, "[64:ff9b:1::cb00:7109]:4711", nil, "64:ff9b:1::/64"},
		{"the zone is left out", nil, 128, "[fe80::1%eth0]:4711", nil, "fe80::1/128"},
		{"a Unix socket", ten, 0, "@", []string{"198.51.100.7"}, "unknown"},

		{"no proxy is trusted", nil, 0, "10.1.2.3:80", []string{"198.51.100.7"}, "10.1.2.3"},
		{"the peer is not trusted", ten, 0, "203.0.113.9:80", []string{"198.51.100.7"}, "203.0.113.9"},
		{"trusted addresses are skipped", ten, 0, "10.1.2.3:80", []string{"6.6.6.6, 198.51.100.7, 10.0.0.5"}, "198.51.100.7"},
		{"lines are joined in order", ten, 0, "10.1.2.3:80", []string{"6.6.6.6", "198.51.100.7", "10.0.0.5,10.0.0.6"}, "198.51.100.7"},
		{"a proxy in IPv6", ten, 0, "[fd00::1]:80", []string{"198.51.100.7"}, "198.51.100.7"},
		{"a proxy as IPv4 in IPv6", ten, 0, "[::ffff:10.0.0.1]:80", []string{"198.51.100.7, ::ffff:10.0.0.2"}, "198.51.100.7"},
		{"a proxy names a NAT64", ten, 0, "10.1.2.3:80", []string{"64:ff9b::198.51.100.7"}, "198.51.100.7"},
		{"a NAT64 is no proxy", ten, 0, "[64:ff9b::10.1.2.3]:80", []string{"198.51.100.7"}, "10.1.2.3"},
		{"unless it is named", prefixes("64:ff9b::/96"), 0, "[64:ff9b::10.1.2.3]:80", []string{"198.51.100.7"}, "198.51.100.7"},
		{"a prefix as IPv4 in IPv6", prefixes("::ffff:10.0.0.0/104"), 0, "10.0.0.1:80", []string{"198.51.100.7"}, "198.51.100.7"},
		{"a prefix with bits behind it", prefixes("10.9.9.9/8"), 0, "10.0.0.1:80", []string{"198.51.100.7"}, "198.51.100.7"},
		{"entries with ports", ten, 0, "10.1.2.3:80", []string{"198.51.100.7:1234, 10.0.0.5:99"}, "198.51.100.7"},
		{"IPv6 in brackets", ten, 0, "10.1.2.3:80", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"IPv6 with a port", ten, 0, "10.1.2.3:80", []string{"[2001:db8::1]:99"}, "2001:db8::/64"},
		{"IPv6 with a zone", ten, 128, "10.1.2.3:80", []string{"fe80::1%eth0"}, "fe80::1/128"},
		{"all are trusted", ten, 0, "10.1.2.3:80", []string{"10.0.0.4, 10.0.0.5"}, "10.0.0.4"},
		{"no field", ten, 0, "10.1.2.3:80", nil, "10.1.2.3"},
		{"an empty field", ten, 0, "10.1.2.3:80", []string{""}, "10.1.2.3"},
		{"an empty line last", ten, 0, "10.1.2.3:80", []string{"198.51.100.7", ""}, "10.1.2.3"},
		{"a missing entry", ten, 0, "10.1.2.3:80", []string{"198.51.100.7,, 10.0.0.5"}, "10.0.0.5"},
		{"garbage", ten, 0, "10.1.2.3:80", []string{"198.51.100.7, unknown, 10.0.0.5"}, "10.0.0.5"},
		{"garbage last", ten, 0, "10.1.2.3:80", []string{"198.51.100.7, 10.0.0.5, _hidden"}, "10.1.2.3"},
		{"garbage further left does not matter", ten, 0, "10.1.2.3:80", []string{"<script>, 198.51.100.7"}, "198.51.100.7"},
		{"a port that is none", ten, 0, "10.1.2.3:80", []string{"198.51.100.7:99999"}, "10.1.2.3"},
		{
			"a long way is not followed to its end", ten, 0, "10.1.2.3:80",
			[]string{"198.51.100.7" + strings.Repeat(",10.0.0.5", 1000)}, "10.0.0.5",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := middleware(t, httplimit.Config{
				Limiter:        inMemory(t, 0, limiter.FixedWindow(10, time.Minute)),
				TrustedProxies: tt.trusted, IPv6Prefix: tt.bits,
			})
			require.Equal(t, "ip:"+tt.want, m.ClientKey(forwarded(tt.peer, tt.lines...)))
		})
	}
}

// forwarded is a request of a peer with lines of X-Forwarded-For.
func forwarded(peer string, lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	r.Header["X-Forwarded-For"] = lines
	return r
}

// What stands left of the address that the last trusted proxy saw is made up by the client, and must not
// make it another one.
func FuzzForwardedFor(f *testing.F) {
	for _, seed := range []string{
		"", ",", "6.6.6.6", "6.6.6.6, 10.0.0.1", " [::1]:80 ,x", "::ffff:10.0.0.1%z", "\x00\xff", "10.0.0.1,10.0.0.2\n10.0.0.3", "64:ff9b::6.6.6.6",
	} {
		f.Add(seed)
	}
	m, err := httplimit.New(httplimit.Config{
		Limiter: anyLimiter(f), OnError: httplimit.FailOpen, TrustedProxies: prefixes("10.0.0.0/8"),
	})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		const peer = "10.0.0.1:80"
		lines := strings.Split(text, "\n")
		key := m.ClientKey(forwarded(peer, lines...))
		address, ok := strings.CutPrefix(key, "ip:")
		require.True(t, ok, key)
		if strings.Contains(address, "/") {
			p, err := netip.ParsePrefix(address)
			require.NoError(t, err)
			require.Equal(t, 64, p.Bits())
			require.Equal(t, p.Masked(), p)
			require.False(t, p.Addr().Is4In6())
		} else {
			a, err := netip.ParseAddr(address)
			require.NoError(t, err)
			require.True(t, a.Is4())
		}
		require.Equal(t, key, m.ClientKey(forwarded(peer, strings.Join(lines, ","))), "lines and commas mean the same")
		require.Equal(t, "ip:198.51.100.7", m.ClientKey(forwarded(peer, append(lines, "198.51.100.7, 10.0.0.2")...)))
		require.Equal(t, "ip:198.51.100.7", m.ClientKey(forwarded("198.51.100.7:80", lines...)))
	})
}

func anyLimiter(tb testing.TB) *limiter.Limiter {
	tb.Helper()
	l, err := limiter.New(limiter.NewMemory(limiter.MemoryConfig{}), "api", limiter.FixedWindow(10, time.Minute))
	require.NoError(tb, err)
	return l
}

func BenchmarkClientBehindProxies(b *testing.B) {
	m, err := httplimit.New(httplimit.Config{
		Limiter: anyLimiter(b), OnError: httplimit.FailOpen, TrustedProxies: prefixes("10.0.0.0/8"),
	})
	require.NoError(b, err)
	r := forwarded("10.1.2.3:80", "6.6.6.6, 198.51.100.7, 10.0.0.5")
	b.ReportAllocs()
	for b.Loop() {
		m.ClientKey(r)
	}
}
