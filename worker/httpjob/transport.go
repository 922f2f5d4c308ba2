package httpjob

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// A transport makes calls over kept connections: through the guard, or through a proxy
// if there is one for the call.
type transport struct {
	guard   *guard
	proxy   func(*http.Request) (*url.URL, error) // nil for none
	direct  *http.Transport
	proxied *http.Transport
}

func newTransport(c Config) *transport {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: c.Resolver}
	t := &transport{guard: newGuard(c.AllowNetworks, dialer), proxy: c.Proxy}
	t.direct = kept(t.guard.dial, c.TLS)
	// The proxy is one's own, and mostly at a private address: the guard is not for it.
	t.proxied = kept(dialer.DialContext, c.TLS)
	t.proxied.Proxy = func(r *http.Request) (*url.URL, error) {
		return r.Context().Value(proxyKey{}).(*url.URL), nil
	}
	return t
}

// kept is for many short calls, each to one of many hosts, over kept connections.
func kept(dial func(ctx context.Context, network, address string) (net.Conn, error), secure *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     verified(secure),
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true, // a DialContext of one's own switches it off
		HTTP2: &http.HTTP2Config{
			// What the other side may send before it is read. The default of 4 MiB, times the calls
			// that run at once, is much to hold of answers of which little is wanted.
			MaxReceiveBufferPerStream: MaxAnswerBody,
			// A connection that went away in silence would take every call to its host with it.
			SendPingTimeout: 15 * time.Second,
			PingTimeout:     5 * time.Second,
		},
		// As many as run at once for one key by default: with fewer, a busy host
		// would be dialled anew for most calls.
		MaxIdleConnsPerHost:    100,
		MaxIdleConns:           1000,
		IdleConnTimeout:        30 * time.Second, // below the 60 s after which many servers hang up
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // an answer is kept as it is: ask for nothing that needs unpacking
	}
}

// verified is the configuration with which no certificate goes unchecked.
func verified(given *tls.Config) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if given != nil {
		c = given.Clone()
	}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	c.InsecureSkipVerify = false
	return c
}

type proxyKey struct{}

// RoundTrip makes one call.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	proxy, err := t.proxyFor(r)
	switch {
	case err != nil:
		_ = r.Body.Close()
		return nil, err
	case proxy == nil:
		return t.direct.RoundTrip(r)
	}
	return t.proxied.RoundTrip(r.WithContext(context.WithValue(r.Context(), proxyKey{}, proxy)))
}

// proxyFor finds the proxy for a call. The proxy resolves a name by itself, out of sight of
// the guard, so all that can be refused here is an address, and what resolvers take for one.
func (t *transport) proxyFor(r *http.Request) (*url.URL, error) {
	if t.proxy == nil {
		return nil, nil
	}
	proxy, err := t.proxy(r)
	if err != nil || proxy == nil {
		return nil, err
	}
	host := strings.TrimSuffix(strings.ToLower(r.URL.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return proxy, t.guard.allows(a)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case last == "localhost":
		return proxy, t.guard.allows(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	case last == "" || last[0] >= '0' && last[0] <= '9':
		// No name ends so: "2130706433", "0x7f.1" and "127.1" are old ways to write an address.
		return nil, errOldAddress
	}
	return proxy, nil
}

var errOldAddress = errors.New("the host is neither a name nor an address in its usual form")

// CloseIdleConnections is what an http.Client asks of its transport.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	t.proxied.CloseIdleConnections()
}
