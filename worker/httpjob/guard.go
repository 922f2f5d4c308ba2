package httpjob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"

	"code.dny.dev/ssrf"
)

// A BlockedError refuses an address that is not public and not in an allowed
// network. Nothing was sent to it.
type BlockedError struct {
	Address netip.Addr
	Network netip.Prefix // the range, not a public one, that the address is in
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%v is in %v, which calls may not reach: want a public address, or allow the network by --allow-network %v, "+
		"http.allow_networks in the config file, or Config.AllowNetworks", e.Address, e.Network, e.Network)
}

// A guard keeps calls away from addresses that only this side can reach: a URL
// often comes from a customer, and may name the metadata service of a cloud or a
// database. It judges the address that is about to be dialled and not the name, which
// may resolve to something else by then.
type guard struct {
	dialer net.Dialer
	ranges *ssrf.Guardian
}

func newGuard(allowed []netip.Prefix, dialer net.Dialer) *guard {
	var v4, v6 []netip.Prefix
	for _, p := range allowed {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	return &guard{dialer: dialer, ranges: ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))}
}

// dial connects to the first address of a name that is allowed and answers. Of a name
// that has both kinds of addresses the others are passed over.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var tried atomic.Bool // one that is allowed
	dialer := g.dialer
	dialer.Control = func(network, address string, c syscall.RawConn) error {
		err := g.control(network, address, c)
		if err == nil {
			tried.Store(true)
		}
		return err
	}
	conn, err := dialer.DialContext(ctx, network, address)
	// The error is that of one address. It says nothing final if another is allowed.
	if isBlocked(err) && tried.Load() {
		err = &net.OpError{Op: "dial", Net: network, Err: errAllowedAway}
	}
	return conn, err
}

var errAllowedAway = errors.New("none of its addresses that calls may reach can be connected to")

// control is what a net.Dialer asks about each address before it connects.
func (g *guard) control(network, address string, c syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q is not allowed: want IP:port", address)
	}
	// The same address in other forms: IPv4 within IPv6, and with the name of an interface.
	plain := at.Addr().Unmap().WithZone("")
	if err := g.ranges.Safe(network, netip.AddrPortFrom(plain, at.Port()).String(), c); errors.Is(err, ssrf.ErrProhibitedIP) {
		return &BlockedError{Address: plain, Network: rangeOf(plain)}
	} else if err != nil {
		return err
	}
	if ssrf.IPv6NAT64Prefix.Contains(plain) { // it was allowed; what it leads to must be as well
		bytes := plain.As16()
		return g.allows(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	return nil
}

// allows tells what is wrong with an address.
func (g *guard) allows(a netip.Addr) error {
	network := "tcp6"
	if a.Unmap().Is4() {
		network = "tcp4"
	}
	return g.control(network, netip.AddrPortFrom(a, 0).String(), nil)
}

func isBlocked(err error) bool {
	var blocked *BlockedError
	return errors.As(err, &blocked)
}

// outside are ranges of IPv6 beyond the public one, for errors.
var outside = []netip.Prefix{
	netip.MustParsePrefix("::/128"), netip.MustParsePrefix("::1/128"), ssrf.IPv6NAT64Prefix, netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// rangeOf names the range that has an address blocked.
func rangeOf(a netip.Addr) netip.Prefix {
	for _, p := range slices.Concat(ssrf.IPv4DeniedPrefixes, ssrf.IPv6DeniedPrefixes, outside) {
		if p.Contains(a) {
			return p
		}
	}
	rest, _ := a.Prefix(ssrf.IPv6GlobalUnicast.Bits()) // the bits are within the address
	return rest
}
