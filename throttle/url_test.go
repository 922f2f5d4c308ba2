package throttle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

func TestOpenReadsTheURL(t *testing.T) {
	for _, c := range []struct {
		url  string
		want redis.UniversalOptions
	}{
		{"redis://cache", redis.UniversalOptions{Addrs: []string{"cache:6379"}}},
		{"REDIS://cache/", redis.UniversalOptions{Addrs: []string{"cache:6379"}}},
		{"redis://127.0.0.1:7000/3", redis.UniversalOptions{Addrs: []string{"127.0.0.1:7000"}, DB: 3}},
		{"redis://[::1]/1", redis.UniversalOptions{Addrs: []string{"[::1]:6379"}, DB: 1}},
		{"redis://[fe80::1%25eth0]", redis.UniversalOptions{Addrs: []string{"[fe80::1%eth0]:6379"}}},
		{"redis://cache?db=4", redis.UniversalOptions{Addrs: []string{"cache:6379"}, DB: 4}},
		{"redis://:secret@cache", redis.UniversalOptions{Addrs: []string{"cache:6379"}, Password: "secret"}},
		{"redis://al%40ice:a%2Fb%3Fc%23d%40e%25@cache:1", redis.UniversalOptions{Addrs: []string{"cache:1"}, Username: "al@ice", Password: "a/b?c#d@e%"}},
		{"redis://alice:a@b@cache", redis.UniversalOptions{Addrs: []string{"cache:6379"}, Username: "alice", Password: "a@b"}},
		{"redis://cache?pool_size=7&read_timeout=1500ms", redis.UniversalOptions{Addrs: []string{"cache:6379"}, PoolSize: 7, ReadTimeout: 1500 * time.Millisecond}},
		{"redis://cache?max_retries=-1&dial_timeout=2", redis.UniversalOptions{Addrs: []string{"cache:6379"}, MaxRetries: -1, DialTimeout: 2 * time.Second}},
		{"rediss://cache", redis.UniversalOptions{Addrs: []string{"cache:6379"}, TLSConfig: &tls.Config{ServerName: "cache", MinVersion: tls.VersionTLS12}}},
		{"rediss://cache?skip_verify=true", redis.UniversalOptions{Addrs: []string{"cache:6379"}, TLSConfig: &tls.Config{ServerName: "cache", MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}},
		{"redis-sentinel://s1,s2:5000,[::1]/2?master=main", redis.UniversalOptions{Addrs: []string{"s1:26379", "s2:5000", "[::1]:26379"}, DB: 2, MasterName: "main"}},
		{
			"rediss-sentinel://alice:secret@s1?master=main&sentinel_username=bob&sentinel_password=p%40ss&pool_size=9",
			redis.UniversalOptions{
				Addrs: []string{"s1:26379"}, MasterName: "main", Username: "alice", Password: "secret",
				SentinelUsername: "bob", SentinelPassword: "p@ss", PoolSize: 9, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			},
		},
		{"redis+cluster://alice:secret@n1:7001,n2/0", redis.UniversalOptions{Addrs: []string{"n1:7001", "n2:6379"}, Username: "alice", Password: "secret", IsClusterMode: true}},
		{"rediss+cluster://n1", redis.UniversalOptions{Addrs: []string{"n1:6379"}, IsClusterMode: true, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}}},
	} {
		t.Run(c.url, func(t *testing.T) {
			c.want.ContextTimeoutEnabled = true
			c.want.DisableIdentity = true
			c.want.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
			got, err := parseRedisURL(c.url)
			require.NoError(t, err)
			require.Equal(t, &c.want, got)
		})
	}
}

func TestOpenChoosesTheClient(t *testing.T) {
	for url, want := range map[string]redis.UniversalClient{
		"redis://cache":                       &redis.Client{},
		"redis-sentinel://s1,s2?master=main":  &redis.Client{},
		"redis+cluster://n1":                  &redis.ClusterClient{},
		"rediss+cluster://n1,n2?pool_fifo=1":  &redis.ClusterClient{},
		"redis-sentinel://s1/1?master=a%26b=": &redis.Client{},
	} {
		client, err := Open(url)
		require.NoError(t, err, url)
		require.IsType(t, want, client, url)
		require.NoError(t, client.Close())
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct{ url, shown, wanted string }{
		{"", "…", "starts with redis://"},
		{"cache:6379", "…", "starts with redis://"},
		{"alice:hunter2@cache:6379", "…", "starts with redis://"},
		{"alice:hunter2://cache", "…", "starts with redis://"},
		{"http://cache", "…", "starts with redis://"},
		{"unix:///run/redis.sock", "…", "starts with redis://"},
		{"redis:cache", "…", "starts with redis://"},

		{"redis://", "redis://…", "host or host:port"},
		{"redis://:6379", "redis://…", "host or host:port"},
		{"redis:///0", "redis://…", "host or host:port"},
		{"redis://:hunter2", "redis://…", "host or host:port"},
		{"redis://alice:hunter2", "redis://…", "host or host:port"},
		{"redis://cache:0", "redis://…", "from 1 to 65535"},
		{"redis://cache:65536", "redis://…", "from 1 to 65535"},
		{"redis://::1", "redis://…", "IPv6 addresses in brackets"},
		{"redis://ca che", "redis://…", "host or host:port"},
		{"redis+cluster://n1,,n2", "redis+cluster://…", "host or host:port"},
		{"redis://n1,n2", "redis://n1,n2", "one host"},

		{"redis://alice@cache", "redis://cache", "a password with the user name"},
		{"redis://alice:@cache", "redis://cache", "a password with the user name"},
		{"redis://alice:hunter 2@cache", "redis://cache", "percent-encoded"},
		{"redis://alice:%zzhunter2@cache", "redis://cache", "percent-encoded"},
		{"redis://alice:1/hunter2@cache", "redis://…", "percent-encoded, as %2F %3F %23 %40"},
		{"redis://alice:1?hunter2@cache", "redis://…", "percent-encoded"},
		{"redis://alice:1#hunter2@cache", "redis://…", "percent-encoded"},
		{"redis://alice:1@2/hunter2@cache", "redis://…", "percent-encoded"},
		{"redis://cache#part", "redis://…", "percent-encoded"},

		{"redis://cache/one", "redis://cache", "one database number"},
		{"redis://cache/0/1", "redis://cache", "one database number"},
		{"redis://cache/-1", "redis://cache", "db from 0 to 2147483647"},
		{"redis+cluster://n1/1", "redis+cluster://n1", "database 0"},
		{"redis+cluster://n1?db=1", "redis+cluster://n1", "database 0"},

		{"redis://cache?pool_sizes=1", "redis://cache", `no option "pool_sizes"`},
		{"redis://cache?skip_verify=true", "redis://cache", `no option "skip_verify"`},
		{"redis://cache?master=main", "redis://cache", `no option "master"`},
		{"redis+cluster://n1?master=main", "redis+cluster://n1", `no option "master"`},
		{"redis://cache?pool_size=hunter2", "redis://cache", `for option "pool_size"`},
		{"redis://cache?read_timeout=hunter2", "redis://cache", `for option "read_timeout"`},
		{"redis://cache?pool_fifo=hunter2", "redis://cache", `for option "pool_fifo"`},
		{"redis://cache?pool_size=1&pool_size=2", "redis://cache", `"pool_size" only once`},
		{"redis://cache?a=1;b=hunter2", "redis://cache", "name=value"},
		{"redis://cache?pool_size=100001", "redis://cache", "pool_size from 1 to 100000"},
		{"redis://cache?pool_size=-1", "redis://cache", "pool_size from 1 to 100000"},
		{"redis://cache?max_retries=-2", "redis://cache", "max_retries from -1 to 100"},
		{"redis://cache?protocol=4", "redis://cache", "protocol from 2 to 3"},

		{"redis-sentinel://s1", "redis-sentinel://s1", "?master=NAME"},
		{"redis-sentinel://s1?master=", "redis-sentinel://s1", "?master=NAME"},
		{"redis-sentinel://s1?master=main&read_only=true", "redis-sentinel://s1", `no option "read_only"`},
		{"redis-sentinel://s1?master=main&sentinel_username=alice", "redis-sentinel://s1", "sentinel_password with"},
		{"redis-sentinel://s1?master=main&sentinel_password=hunt@er2", "redis-sentinel://…", "percent-encoded"},
	} {
		t.Run(c.url, func(t *testing.T) {
			client, err := Open(c.url)
			require.Nil(t, client)
			require.ErrorIs(t, err, ErrInvalid)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "redis", invalid.Field)
			require.Equal(t, c.shown, invalid.Value)
			require.Contains(t, invalid.Allowed, c.wanted)
			require.NotContains(t, err.Error(), "alice")
			require.NotContains(t, err.Error(), "hunt")
		})
	}
}

// An option that redis.ParseURL learns to read in a later release must not get
// lost between its options and ours.
func TestOpenKeepsEveryOption(t *testing.T) {
	options := "client_name=weir&protocol=2&max_retries=5&min_retry_backoff=1s&max_retry_backoff=2s&dial_timeout=3s" +
		"&read_timeout=4s&write_timeout=5s&pool_fifo=true&pool_size=6&pool_timeout=7s&min_idle_conns=1&max_idle_conns=8" +
		"&max_active_conns=9&max_concurrent_dials=4&pipeline_pool_size=11&pipeline_read_buffer_size=12&pipeline_write_buffer_size=13" +
		"&conn_max_idle_time=14s&conn_max_lifetime=15s&conn_max_lifetime_jitter=16ms"
	parsed, err := redis.ParseURL("rediss://user:password@host/3?" + options)
	require.NoError(t, err)
	opened, err := parseRedisURL("rediss://user:password@host/3?" + options)
	require.NoError(t, err)

	from, to := reflect.ValueOf(*parsed), reflect.ValueOf(*opened)
	for i := range from.NumField() {
		name := from.Type().Field(i).Name
		if name == "Addr" || name == "Network" || from.Field(i).IsZero() {
			continue
		}
		require.True(t, to.FieldByName(name).IsValid(), name)
		require.Equal(t, from.Field(i).Interface(), to.FieldByName(name).Interface(), name)
	}
	for name := range strings.SplitSeq(options, "&") {
		name, _, _ = strings.Cut(name, "=")
		field := strings.ReplaceAll(name, "_", "")
		set := to.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, field) })
		require.True(t, set.IsValid() && !set.IsZero(), name)
	}
}

// commandsOf records the commands that a server is sent.
func commandsOf(m *miniredis.Miniredis) <-chan string {
	seen := make(chan string, 100)
	m.Server().SetPreHook(func(_ *server.Peer, command string, args ...string) bool {
		seen <- strings.ToUpper(strings.Join(append([]string{command}, args...), " "))
		return false
	})
	return seen
}

func TestOpenedClientSendsOnlyWhatOldServersKnow(t *testing.T) {
	m := miniredis.RunT(t)
	m.RequireUserAuth("alice", "p@ss")
	seen := commandsOf(m)
	client := open(t, "redis://alice:p%40ss@"+m.Addr()+"/2")
	require.Empty(t, seen)

	require.NoError(t, client.Ping(t.Context()).Err())
	require.Equal(t, "HELLO 3 AUTH ALICE P@SS", <-seen)
	require.Equal(t, "SELECT 2", <-seen)
	require.Equal(t, "PING", <-seen)
	require.Empty(t, seen)
}

func TestOpenedClientObeysItsContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, never answers
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	client := open(t, "redis://"+silent.Addr().String())

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(t, client.Ping(ctx).Err(), context.DeadlineExceeded)
	require.Less(t, time.Since(start), 2*time.Second)
}

func TestOpenOverTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	self := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	require.NoError(t, err)
	m := miniredis.NewMiniRedis()
	require.NoError(t, m.StartTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	defer m.Close()

	require.NoError(t, open(t, "rediss://"+m.Addr()+"?skip_verify=true").Ping(t.Context()).Err())
	require.NoError(t, open(t, "rediss+cluster://"+m.Addr()+"?skip_verify=true").Ping(t.Context()).Err())
	err = open(t, "rediss://"+m.Addr()).Ping(t.Context()).Err()
	var unverified *tls.CertificateVerificationError
	require.ErrorAs(t, err, &unverified)
}

func TestOpenThroughSentinel(t *testing.T) {
	primary, sentinel := miniredis.RunT(t), miniredis.RunT(t)
	primary.RequireAuth("of-redis")
	sentinel.RequireAuth("of-sentinel")
	require.NoError(t, sentinel.Server().Register("SENTINEL", func(c *server.Peer, _ string, args []string) {
		if len(args) == 2 && strings.EqualFold(args[0], "get-master-addr-by-name") && args[1] == "main" {
			c.WriteStrings([]string{primary.Host(), primary.Port()})
			return
		}
		c.WriteLen(0)
	}))

	client := open(t, "redis-sentinel://:of-redis@"+sentinel.Addr()+"/5?master=main&sentinel_password=of-sentinel")
	require.NoError(t, client.Set(t.Context(), "key", "value", 0).Err())
	value, err := primary.DB(5).Get("key")
	require.NoError(t, err)
	require.Equal(t, "value", value)
}

func TestOpenOfCluster(t *testing.T) {
	m := miniredis.RunT(t)
	client := open(t, "redis+cluster://"+m.Addr()+",127.0.0.1:1")
	require.NoError(t, client.Set(t.Context(), "{1}a", "value", 0).Err())
	m.CheckGet(t, "{1}a", "value")
}

func open(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client, err := Open(url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// FuzzOpen puts a user and a password that are not encoded into a URL: whatever
// is read out of it, neither may come up in the error.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"", "/", "?", "#", "@", ":", ",", "%", " ", "//", "://", "@h/", "@h?a=", "?a=b&", ";", "\x00", "[", "é"} {
		f.Add("redis", s, s, "cache:6379", "/0?pool_size=1")
	}
	f.Add("redis+cluster", "", "", "n1:1,n2", "?min_idle_conns=5")
	f.Add("redis-sentinel", "", "", "s1,s2", "/1?master=main&sentinel_password=x")
	f.Add("rediss", "", "", "[::1]:1", "?skip_verify=true&max_retries=-9")
	f.Fuzz(func(t *testing.T, scheme, before, after, hosts, tail string) {
		const user, password = "AlIcE", "HuNtEr"
		rawURL := scheme + "://" + user + before + ":" + before + password + after + "@" + hosts + tail
		opts, err := parseRedisURL(rawURL)
		if err != nil {
			require.Nil(t, opts)
			require.ErrorIs(t, err, ErrInvalid)
			require.NotContains(t, err.Error(), user)
			require.NotContains(t, err.Error(), password)
			return
		}
		require.NotEmpty(t, opts.Addrs)
		require.True(t, opts.ContextTimeoutEnabled)
		opts.MinIdleConns = 0 // it would dial
		require.NoError(t, redis.NewUniversalClient(opts).Close())
	})
}
