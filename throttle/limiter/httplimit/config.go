package httplimit

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
)

// An OnError is what to do with a request that the limiter gave no answer to.
type OnError int

const (
	// FailOpen lets it pass, without rate limit fields: an outage of the store is no outage
	// of the service, but there is no limit while it lasts.
	FailOpen OnError = iota + 1
	// FailClosed answers 503: nothing passes that was not counted, and an outage of the store
	// is one of the service.
	FailClosed
)

// String gives "open" or "closed".
func (o OnError) String() string {
	switch o {
	case FailOpen:
		return "open"
	case FailClosed:
		return "closed"
	default:
		return "OnError " + strconv.Itoa(int(o))
	}
}

// Config sets up a [Middleware]. Limiter and OnError have to be given.
type Config struct {
	// Limiter is asked. Its name tells this limit from others in the same store: two
	// routes that must not share a limit need two limiters with different names.
	Limiter *limiter.Limiter
	// OnError is FailOpen or FailClosed. There is no default: which of the two is harmless
	// depends on what is limited.
	OnError OnError

	// Skip tells the requests that pass unasked: they are charged nothing, and no fields are
	// set. It is meant for health checks and the like, and comes before all else. nil: none.
	Skip func(*http.Request) bool
	// Cost tells what a request is charged, at least 1. nil stands for 1 each. It must not wait.
	Cost func(*http.Request) int64

	// Key tells the client of a request in whatever way is wanted, "" to leave it to APIKey, User
	// and the address. Two requests with the same text share a limit: a tenant, or "tenant/route". It must not be
	// made of what a client may choose freely. nil: all is left to those.
	Key func(*http.Request) string
	// APIKey tells the API key of a request, "" if it has none; see [APIKeyHeader] and
	// [BearerToken]. It must return verified keys only, unless what stands before the middleware
	// refuses all others: whoever may make up keys has as many limits as keys. nil: no keys.
	APIKey func(*http.Request) string
	// User tells the authenticated user of a request that has no API key, "" if there is
	// none. nil: no users.
	User func(*http.Request) string
	// TrustedProxies are the addresses of proxies whose X-Forwarded-For is believed. It
	// is read from the right; the client is the first address there that is not trusted, or the last one
	// before something that is no address. Trust only proxies that add the address they were called
	// from. None: the client is the peer, whatever it sends. No other field, such as
	// Forwarded or X-Real-IP, is ever read. A prefix of 0 bits would trust the clients and is refused.
	TrustedProxies []netip.Prefix
	// IPv6Prefix is how many bits of an IPv6 address tell clients apart. 0 means 64, the
	// network of one subscriber, who has all addresses in it; 32 to 128. Addresses in 64:ff9b::/96, the
	// well-known prefix of NAT64, are taken for the IPv4 address in them.
	IPv6Prefix int

	// Timeout is how long the limiter may take until OnError decides. 0 means 100ms; 1ms to 1m.
	Timeout time.Duration
	// MaxCalls bounds the calls to the limiter under way at once, those included that were given
	// up after Timeout and are stuck, so that they do not pile up. When so many are under way,
	// requests wait up to Timeout for one to end, or if any of them is stuck not at all.
	// 0 means 256; 1 to 65536.
	MaxCalls int
	// Deny answers what is not let through. The rate limit fields, if there are any, and Retry-After
	// are set by then. It has to send p.Status: if it sends nothing, net/http makes it an empty 200.
	// nil means [WriteProblem].
	Deny func(w http.ResponseWriter, r *http.Request, p Problem)
	// Logger is told of errors: outages, and costs below 1, of each in one line a second at most. nil
	// means slog.Default() as it is when the middleware is made, for with FailOpen an
	// outage is seen nowhere else; a logger on slog.DiscardHandler is silent.
	Logger *slog.Logger
	// Now is the clock of X-RateLimit-Reset. nil means time.Now; it is for tests.
	Now func() time.Time
}

const (
	minTimeout, maxTimeout = time.Millisecond, time.Minute
	maxMaxCalls            = 65536
	minIPv6Prefix          = 32
	addressBitsOfIPv6      = 128
)

func (c Config) withDefaults() Config {
	setDefault(&c.IPv6Prefix, 64)
	setDefault(&c.Timeout, 100*time.Millisecond)
	setDefault(&c.MaxCalls, 256)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Deny == nil {
		c.Deny = WriteProblem
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c Config) validate() error {
	switch {
	case c.Limiter == nil:
		return invalid("limiter", "nil", "a limiter made by limiter.New")
	case c.OnError != FailOpen && c.OnError != FailClosed:
		return invalid("on_error", int(c.OnError), "FailOpen or FailClosed, which has no default")
	case c.IPv6Prefix < minIPv6Prefix || c.IPv6Prefix > addressBitsOfIPv6:
		return invalid("ipv6_prefix", c.IPv6Prefix, "%d to %d bits", minIPv6Prefix, addressBitsOfIPv6)
	case c.Timeout < minTimeout || c.Timeout > maxTimeout:
		return invalid("timeout", c.Timeout, "%v to %v", minTimeout, maxTimeout)
	case c.MaxCalls < 1 || c.MaxCalls > maxMaxCalls:
		return invalid("max_calls", c.MaxCalls, "1 to %d", maxMaxCalls)
	}
	return nil
}

func invalid(field string, value any, allowed string, args ...any) error {
	return &throttle.InvalidError{Field: field, Value: value, Allowed: fmt.Sprintf(allowed, args...)}
}
