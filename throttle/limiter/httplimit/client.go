package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"strings"
)

// APIKeyHeader takes the API key from a field of the request, "X-API-Key" for one. It verifies nothing:
// see [Config].APIKey.
func APIKeyHeader(field string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(field) }
}

// BearerToken takes the API key from "Authorization: Bearer KEY" (RFC 6750). It verifies nothing:
// see [Config].APIKey.
func BearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// client is the key that the limiter knows the client of a request by.
func (m *Middleware) client(r *http.Request) string {
	if m.config.Key != nil {
		if key := m.config.Key(r); key != "" {
			return "own:" + hash(key)
		}
	}
	if m.config.APIKey != nil {
		if key := m.config.APIKey(r); key != "" {
			return "key:" + hash(key)
		}
	}
	if m.config.User != nil {
		if user := m.config.User(r); user != "" {
			return "user:" + hash(user)
		}
	}
	return "ip:" + m.network(m.proxies.client(r))
}

// hash is the first half of the SHA-256, in hex.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:sha256.Size/2])
}

// nat64 is the well-known prefix that a translator puts before IPv4 addresses (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// network is what tells an address from others: "198.51.100.7", "2001:db8:1:2::/64". All that have
// no address, as those on a Unix socket, are one client, "unknown". All behind a NAT64 would be another
// one, a single /64, so the IPv4 address counts there. Only here: whether a proxy is trusted is
// decided by the address as it came.
func (m *Middleware) network(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "unknown"
	case a.Is4():
		return a.String()
	case nat64.Contains(a):
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:])).String()
	}
	p, _ := a.Prefix(m.config.IPv6Prefix) // has no error for 0 to 128 bits
	return p.String()
}
