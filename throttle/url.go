package throttle

import (
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Open makes a Redis client from a URL. There is one form for each kind of
// deployment, and with rediss instead of redis it speaks TLS 1.2 or newer:
//
//	redis://[user:password@]host[:port][/db]
//	redis-sentinel://[user:password@]host[:port],…[/db]?master=NAME
//	redis+cluster://[user:password@]host[:port],…
//
// The hosts are the server, its sentinels, or any nodes of the cluster. Ports
// default to 6379, those of sentinels to 26379. Characters with a meaning in
// URLs are percent-encoded in user and password; both are for the Redis
// servers, while the sentinels are given sentinel_username and
// sentinel_password from the query. The other query options are those of
// [redis.ParseURL], such as pool_size=50, read_timeout=3s or skip_verify=true.
//
// Open does not talk to Redis (min_idle_conns alone makes the client dial
// ahead of the first command). The client ends a command when its context
// does, and on connecting sends nothing that Redis 6.2 does not know. Close it
// when it is done with. The error is an [*InvalidError] that never holds the
// user, the password or the value of an option.
func Open(rawURL string) (redis.UniversalClient, error) {
	opts, err := parseRedisURL(rawURL)
	if err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(opts), nil
}

type redisForm struct {
	plain             string // the scheme that redis.ParseURL knows it by
	port              string
	sentinel, cluster bool
}

var redisForms = map[string]redisForm{
	"redis":           {plain: "redis", port: "6379"},
	"rediss":          {plain: "rediss", port: "6379"},
	"redis-sentinel":  {plain: "redis", port: "26379", sentinel: true},
	"rediss-sentinel": {plain: "rediss", port: "26379", sentinel: true},
	"redis+cluster":   {plain: "redis", port: "6379", cluster: true},
	"rediss+cluster":  {plain: "rediss", port: "6379", cluster: true},
}

// parseRedisURL cuts the URL by hand as far as the hosts, since net/url takes
// only one, and leaves the rest to redis.ParseURL. None of their errors is
// passed on: they quote what they failed on, which may be a password.
func parseRedisURL(raw string) (*redis.UniversalOptions, error) {
	shown := "…" // as much of the URL as is sure to hold no secret
	refuse := func(allowed string, args ...any) (*redis.UniversalOptions, error) {
		return nil, invalid("redis", shown, allowed, args...)
	}

	scheme, rest, found := strings.Cut(raw, "://")
	form, known := redisForms[strings.ToLower(scheme)]
	if !found || !known {
		return refuse("a URL that starts with redis://, redis-sentinel:// or redis+cluster://, or with rediss in their place for TLS, such as redis://127.0.0.1:6379/0")
	}
	shown = scheme + "://…"
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	credentials, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		credentials, hosts = authority[:i+1], authority[i+1:]
	}
	// Here an @ or # may be what follows a raw /, ? or # in a password, and what
	// stands for a host its beginning.
	if strings.ContainsAny(tail, "@#") {
		return refuse("each / ? # @ in a user, password or option percent-encoded, as %%2F %%3F %%23 %%40")
	}
	addrs, ok := redisAddrs(hosts, form.port)
	if !ok {
		return refuse("host or host:port with a port from 1 to 65535, IPv6 addresses in brackets")
	}
	shown = scheme + "://" + hosts
	if len(addrs) > 1 && !form.sentinel && !form.cluster {
		return refuse("one host; several need redis-sentinel:// or redis+cluster://")
	}

	first, _, _ := strings.Cut(hosts, ",")
	u, err := url.Parse(form.plain + "://" + credentials + first + tail)
	if err != nil {
		return refuse("a URL whose special characters are percent-encoded")
	}
	if password, _ := u.User.Password(); u.User.Username() != "" && password == "" {
		return refuse("a password with the user name, as user:password@ or :password@")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return refuse("options as name=value, joined by &, their special characters percent-encoded")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 {
			return refuse("option %q only once", name)
		}
	}
	take := func(name string) string {
		defer query.Del(name)
		return query.Get(name)
	}
	var master, sentinelUser, sentinelPassword string
	if form.sentinel {
		master, sentinelUser, sentinelPassword = take("master"), take("sentinel_username"), take("sentinel_password")
		if master == "" {
			return refuse("the name by which the sentinels know the primary, as ?master=NAME")
		}
		if sentinelUser != "" && sentinelPassword == "" {
			return refuse("sentinel_password with sentinel_username")
		}
	}

	u.RawQuery = query.Encode()
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return refuse("%s", wantedOption(form.plain, query))
	}
	if wanted := wantedNumber(o); wanted != "" {
		return refuse("%s", wanted)
	}
	if form.cluster && o.DB != 0 {
		return refuse("database 0, the only one a Redis Cluster has")
	}
	if o.TLSConfig != nil && (form.sentinel || form.cluster) {
		o.TLSConfig.ServerName = "" // each node answers for its own name, not for the first one's
	}

	return &redis.UniversalOptions{
		Addrs:            addrs,
		IsClusterMode:    form.cluster,
		MasterName:       master,
		SentinelUsername: sentinelUser,
		SentinelPassword: sentinelPassword,

		// Without this a command outlives its context for as long as Redis stalls.
		ContextTimeoutEnabled: true,
		// Both send commands on connecting that Redis 6.2 answers with errors.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},

		// All that redis.ParseURL sets.
		Username:                o.Username,
		Password:                o.Password,
		DB:                      o.DB,
		TLSConfig:               o.TLSConfig,
		Protocol:                o.Protocol,
		ClientName:              o.ClientName,
		MaxRetries:              o.MaxRetries,
		MinRetryBackoff:         o.MinRetryBackoff,
		MaxRetryBackoff:         o.MaxRetryBackoff,
		DialTimeout:             o.DialTimeout,
		ReadTimeout:             o.ReadTimeout,
		WriteTimeout:            o.WriteTimeout,
		PoolFIFO:                o.PoolFIFO,
		PoolSize:                o.PoolSize,
		PoolTimeout:             o.PoolTimeout,
		MinIdleConns:            o.MinIdleConns,
		MaxIdleConns:            o.MaxIdleConns,
		MaxActiveConns:          o.MaxActiveConns,
		MaxConcurrentDials:      o.MaxConcurrentDials,
		PipelinePoolSize:        o.PipelinePoolSize,
		PipelineReadBufferSize:  o.PipelineReadBufferSize,
		PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		ConnMaxIdleTime:         o.ConnMaxIdleTime,
		ConnMaxLifetime:         o.ConnMaxLifetime,
		ConnMaxLifetimeJitter:   o.ConnMaxLifetimeJitter,
	}, nil
}

// redisAddrs reads a list of hosts, each with or without a port.
func redisAddrs(hosts, defaultPort string) (addrs []string, ok bool) {
	for host := range strings.SplitSeq(hosts, ",") {
		u, err := url.Parse("redis://" + host)
		if err != nil || u.Hostname() == "" || strings.Contains(u.Hostname(), ":") != strings.HasPrefix(host, "[") {
			return nil, false
		}
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, false
		}
		addrs = append(addrs, net.JoinHostPort(u.Hostname(), port))
	}
	return addrs, true
}

// wantedOption tells what redis.ParseURL objected to, without the value.
func wantedOption(plain string, query url.Values) string {
	parses := func(name, value string) bool {
		_, err := redis.ParseURL(plain + "://host?" + url.Values{name: {value}}.Encode())
		return err == nil
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !parses(name, "") { // any option it knows may be left empty
			return fmt.Sprintf("no option %q, or one that this kind of URL has", name)
		}
		if !parses(name, query.Get(name)) {
			return fmt.Sprintf("for option %q a whole number, a duration such as 3s, or true or false, whichever it takes", name)
		}
	}
	return "one database number after the hosts, such as /0"
}

// wantedNumber tells the first number that is out of bounds: go-redis takes
// them as they are, and panics, or sends nothing at all, where they make no
// sense.
func wantedNumber(o *redis.Options) string {
	const maxConns, maxBuffer = 100_000, 64 << 20
	for _, n := range []struct {
		name            string
		value, min, max int
	}{
		{"db", o.DB, 0, math.MaxInt32},
		{"protocol", o.Protocol, 2, 3},
		{"max_retries", o.MaxRetries, -1, 100},
		{"pool_size", o.PoolSize, 1, maxConns},
		{"min_idle_conns", o.MinIdleConns, 0, maxConns},
		{"max_idle_conns", o.MaxIdleConns, 0, maxConns},
		{"max_active_conns", o.MaxActiveConns, 0, maxConns},
		{"max_concurrent_dials", o.MaxConcurrentDials, 1, maxConns},
		{"pipeline_pool_size", o.PipelinePoolSize, -1, maxConns},
		{"pipeline_read_buffer_size", o.PipelineReadBufferSize, 1, maxBuffer},
		{"pipeline_write_buffer_size", o.PipelineWriteBufferSize, 1, maxBuffer},
	} {
		// 0 stands for the default with all of them.
		if n.value != 0 && (n.value < n.min || n.value > n.max) {
			return fmt.Sprintf("%s from %d to %d", n.name, n.min, n.max)
		}
	}
	return ""
}
