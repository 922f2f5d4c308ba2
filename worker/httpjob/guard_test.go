package httpjob

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestGuardBlocks(t *testing.T) {
	for address, within := range map[string]string{
		"127.0.0.1": "127.0.0.0/8", "127.9.9.9": "127.0.0.0/8", "0.0.0.0": "0.0.0.0/8", "10.0.0.1": "10.0.0.0/8",
		"172.16.0.1": "172.16.0.0/12", "192.168.0.1": "192.168.0.0/16", "100.64.0.1": "100.64.0.0/10",
		"169.254.169.254": "169.254.0.0/16", "224.0.0.1": "224.0.0.0/4", "240.0.0.1": "240.0.0.0/4",
		"255.255.255.255": "240.0.0.0/4", "198.18.0.1": "198.18.0.0/15", "192.0.0.8": "192.0.0.0/24",
		"[::ffff:127.0.0.1]": "127.0.0.0/8", "[::ffff:7f00:1]": "127.0.0.0/8", "[::ffff:169.254.169.254]": "169.254.0.0/16",
		"[::]": "::/128", "[::1]": "::1/128", "[fe80::1]": "fe80::/10", "[fe80::1%eth0]": "fe80::/10", "[fd00::1]": "fc00::/7",
		"[fd00:ec2::254]": "fc00::/7", "[ff02::1]": "ff00::/8", "[64:ff9b::7f00:1]": "64:ff9b::/96", "[64:ff9b:1::1]": "64:ff9b:1::/48",
		"[2002:7f00:1::]": "2002::/16", "[2001::1]": "2001::/23", "[2001:db8::1]": "2001:db8::/32", "[::7f00:1]": "::/3", "[4000::1]": "4000::/3",
	} {
		network := "tcp4"
		if strings.Contains(address, ":") {
			network = "tcp6"
		}
		err := newGuard(nil, net.Dialer{}).control(network, address+":443", nil)
		var blocked *BlockedError
		require.ErrorAs(t, err, &blocked, address)
		require.Equal(t, within, blocked.Network.String(), address)
		require.ErrorContains(t, err, "is in "+within+", which calls may not reach: want a public address, or allow the network by --allow-network "+within)
	}
}

func TestGuardAllows(t *testing.T) {
	for _, c := range []struct {
		allowed       []netip.Prefix
		address, want string // part of the error; empty means allowed
	}{
		{nil, "93.184.216.34", ""},
		{nil, "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", ""},
		{nil, "[::ffff:93.184.216.34]", ""},
		{prefixes("10.0.0.0/8"), "93.184.216.34", ""},
		{prefixes("10.0.0.0/8"), "10.1.2.3", ""},
		{prefixes("10.0.0.0/8"), "[::ffff:10.1.2.3]", ""},
		{prefixes("10.0.0.0/8"), "11.1.2.3", ""},
		{prefixes("10.0.0.0/8"), "127.0.0.1", "127.0.0.0/8"},
		{prefixes("127.0.0.0/8"), "0.0.0.0", "0.0.0.0/8"},
		{prefixes("127.0.0.0/8"), "[::1]", "::1/128"},
		{prefixes("::1/128", "fd00::/8"), "[fd12::1]", ""},
		{prefixes("fe80::/10"), "[fe80::1%eth0]", ""},
		{prefixes("64:ff9b::/96"), "[64:ff9b::5db8:d822]", ""},
		{prefixes("64:ff9b::/96"), "[64:ff9b::7f00:1]", "127.0.0.1 is in 127.0.0.0/8"},
		{prefixes("64:ff9b::/96", "10.0.0.0/8"), "[64:ff9b::a00:1]", ""},
		{prefixes("0.0.0.0/0", "::/0"), "[::1]", ""},
		{nil, "example.com", "want IP:port"},
	} {
		network := "tcp4"
		if strings.Contains(c.address, ":") {
			network = "tcp6"
		}
		err := newGuard(c.allowed, net.Dialer{}).control(network, c.address+":80", nil)
		if c.want == "" {
			require.NoError(t, err, "%v, %s", c.allowed, c.address)
		} else {
			require.ErrorContains(t, err, c.want, "%v, %s", c.allowed, c.address)
		}
	}
}

// requireBlocked is for a call that nobody heard of and that is not tried again.
func requireBlocked(t *testing.T, err error, within string) {
	t.Helper()
	require.ErrorIs(t, err, asynq.SkipRetry)
	var call *CallError
	require.ErrorAs(t, err, &call)
	require.ErrorContains(t, call, " is in "+within+", which calls may not reach")
	require.NotContains(t, err.Error(), "SECRET")
}

// All of these lead to a listener on this machine, if nobody says no.
func TestBlockedAddressesAreNotConnectedTo(t *testing.T) {
	_, base, connections := serve(t, func(http.ResponseWriter, *http.Request) {})
	h := NewHandler(Config{})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "localhost", "169.254.169.254"} {
		err := process(t.Context(), t, h, Request{URL: "http://u:SECRET@" + host + ":" + port + "/SECRET?SECRET"})
		require.ErrorIs(t, err, asynq.SkipRetry, host)
		var blocked *BlockedError
		require.ErrorAs(t, err, &blocked, host)
		require.NotContains(t, err.Error(), "SECRET")
	}
	require.Zero(t, connections.Load())
}

// A stub answers questions about any name with addresses that a test chooses.
type stub struct {
	conn net.PacketConn
	asks atomic.Int64
}

func startStub(t *testing.T, answer func(ask int64) []string) (*stub, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	s := &stub{conn: conn}
	var served sync.WaitGroup
	served.Go(func() { s.serve(answer) })
	t.Cleanup(func() {
		_ = conn.Close()
		served.Wait()
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}
	return s, &net.Resolver{PreferGo: true, Dial: dial}
}

func (s *stub) serve(answer func(ask int64) []string) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			for _, a := range answer(s.asks.Add(1)) {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()},
				})
			}
		}
		if packed, err := m.Pack(); err == nil {
			_, _ = s.conn.WriteTo(packed, from)
		}
	}
}

// A name that was looked at before says nothing about where it leads by the time of the call.
func TestNamesThatChangeAreJudgedWhenDialled(t *testing.T) {
	_, base, connections := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, resolver := startStub(t, func(ask int64) []string {
		if ask == 1 {
			return []string{"93.184.216.34"}
		}
		return []string{"127.0.0.1"}
	})
	first, err := resolver.LookupNetIP(t.Context(), "ip4", "hook.example.com")
	require.NoError(t, err)
	require.NoError(t, newGuard(nil, net.Dialer{}).allows(first[0]))

	h := NewHandler(Config{Resolver: resolver})
	err = process(t.Context(), t, h, Request{URL: strings.Replace(base, "127.0.0.1", "hook.example.com", 1) + "/SECRET"})
	requireBlocked(t, err, "127.0.0.0/8")
	require.Zero(t, connections.Load())
}

func TestNamesWithSeveralAddresses(t *testing.T) {
	var reached []string
	_, base, connections := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		reached = append(reached, local.String())
	})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	require.NoError(t, err)
	// The server listens at 127.0.0.1 alone; at the others a connection is refused.
	for _, c := range []struct {
		name      string
		addresses []string
		allowed   string
		calls     int64
		final     bool
	}{
		{"the allowed one is called", []string{"127.0.0.2", "127.0.0.1"}, "127.0.0.1/32", 1, false},
		{"the blocked one is not", []string{"127.0.0.1", "127.0.0.2"}, "127.0.0.2/32", 0, false},
		{"nor as the second", []string{"127.0.0.2", "127.0.0.1"}, "127.0.0.2/32", 0, false},
		{"none is allowed", []string{"127.0.0.1", "127.0.0.2"}, "10.0.0.0/8", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := connections.Load()
			_, resolver := startStub(t, func(int64) []string { return c.addresses })
			h := NewHandler(Config{Resolver: resolver, AllowNetworks: prefixes(c.allowed)})
			defer h.CloseIdleConnections()
			err := process(t.Context(), t, h, Request{URL: "http://several.example.com:" + port})
			require.Equal(t, c.calls, connections.Load()-before)
			switch {
			case c.calls > 0:
				require.NoError(t, err)
				require.Equal(t, []string{"127.0.0.1:" + port}, reached)
			case c.final:
				requireBlocked(t, err, "127.0.0.0/8")
			default:
				require.Error(t, err)
				require.NotErrorIs(t, err, asynq.SkipRetry, "the allowed address may be back")
			}
		})
	}
}

func TestProxyIsUsedOnlyWhereSet(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	h, base, _ := serve(t, func(http.ResponseWriter, *http.Request) {})
	require.NoError(t, process(t.Context(), t, h, Request{URL: base}))

	var asked []string
	_, proxyURL, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.RequestURI) })
	proxy, err := url.Parse(proxyURL)
	require.NoError(t, err)
	proxied := NewHandler(Config{Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Hostname() == "127.0.0.1" {
			return nil, nil
		}
		return proxy, nil
	}})
	defer proxied.CloseIdleConnections()
	require.NoError(t, process(t.Context(), t, proxied, Request{URL: "http://nowhere.invalid/x"}), "the proxy need not be public")
	require.Equal(t, []string{"http://nowhere.invalid/x"}, asked)
	requireBlocked(t, process(t.Context(), t, proxied, Request{URL: "http://169.254.169.254/SECRET"}), "169.254.0.0/16")
	requireBlocked(t, process(t.Context(), t, proxied, Request{URL: base}), "127.0.0.0/8")
	require.Len(t, asked, 1)

	broken := NewHandler(Config{Proxy: func(*http.Request) (*url.URL, error) { return nil, fmt.Errorf("SECRET") }})
	err = process(t.Context(), t, broken, Request{URL: base})
	require.EqualError(t, err, "POST to "+strings.TrimPrefix(base, "http://")+": "+errUnusable.Error())
}
