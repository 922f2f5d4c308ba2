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

// network is what tells an address from others: "198.51.100.7", "2001:db8:1:2::/64". All that have
// no address, as those on a Unix socket, are one client, "unknown".
func (m *Middleware) network(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "unknown"
	case a.Is4():
		return a.String()
	}
	p, _ := a.Prefix(m.config.IPv6Prefix) // has no error for 0 to 128 bits
	return p.String()
}
