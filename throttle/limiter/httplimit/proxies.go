package httplimit

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// maxHops bounds how many proxies in a row are believed, so that a long field takes no time.
const maxHops = 64

const forwardedFor = "X-Forwarded-For"

// proxies are the networks whose X-Forwarded-For is believed.
type proxies []netip.Prefix

func newProxies(prefixes []netip.Prefix) (proxies, error) {
	var list proxies
	for i, given := range prefixes {
		p := given
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if !p.IsValid() || p.Bits() < 1 {
			return nil, invalid("trusted_proxies["+strconv.Itoa(i)+"]", given, "an IP prefix of at least 1 bit, as 10.0.0.0/8")
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

func (p proxies) trust(a netip.Addr) bool {
	for _, prefix := range p {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// client is the address that a request comes from. It is the peer, but where that is a trusted proxy the
// one that it names, and so on. It is not valid if the peer has none.
func (p proxies) client(r *http.Request) netip.Addr {
	at, ok := parseAddr(r.RemoteAddr)
	if !ok || !p.trust(at) {
		return at
	}
	hops := hops{lines: r.Header.Values(forwardedFor)}
	for range maxHops {
		entry, more := hops.last()
		if !more {
			return at
		}
		before, ok := parseAddr(entry)
		if !ok {
			return at
		}
		at = before
		if !p.trust(at) {
			return at
		}
	}
	return at
}

// hops are the entries of a field, which may come in several lines.
type hops struct {
	lines []string
	rest  string // of the line that entries are being taken off
	more  bool   // that there is an entry in the rest, which may be empty
}

// last takes the last entry off.
func (h *hops) last() (entry string, ok bool) {
	if !h.more {
		if len(h.lines) == 0 {
			return "", false
		}
		end := len(h.lines) - 1
		h.lines, h.rest = h.lines[:end], h.lines[end]
	}
	comma := strings.LastIndexByte(h.rest, ',')
	h.more = comma >= 0
	entry = h.rest[comma+1:]
	h.rest = h.rest[:max(0, comma)]
	return strings.Trim(entry, " \t"), true
}

// parseAddr reads an address with or without a port or brackets. It drops the zone, and takes an IPv4
// address in IPv6 for what it is.
func parseAddr(s string) (netip.Addr, bool) {
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s += ":0"
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		both, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		a = both.Addr()
	}
	return a.Unmap().WithZone(""), true
}
