package httpjob

import (
	"net"
	"net/http"
	"time"
)

// NewTransport makes the transport of a [Handler] that was given none: for many
// short calls, each to one of many hosts, over kept connections. A proxy is
// taken from the environment.
func NewTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true, // a DialContext of one's own switches it off
		// As many as run at once for one key by default: with fewer, a busy host
		// would be dialled anew for most calls.
		MaxIdleConnsPerHost:    100,
		MaxIdleConns:           1000,
		IdleConnTimeout:        30 * time.Second, // below the 60 s after which many servers hang up
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // answers are thrown away: ask for nothing that needs unpacking
	}
}
