package embedded_test

import (
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *embedded.Server {
	t.Helper()
	server, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

func connect(t *testing.T, server *embedded.Server) redis.UniversalClient {
	t.Helper()
	client, err := throttle.Open(server.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func now(t *testing.T, client redis.UniversalClient) time.Time {
	t.Helper()
	at, err := client.Time(t.Context()).Result()
	require.NoError(t, err)
	return at
}

func TestTimeIsThatOfTheMachine(t *testing.T) {
	client := connect(t, start(t))
	var inMilliseconds, last = 0, time.Time{}
	const readings = 200
	for range readings {
		before := time.Now().Truncate(time.Microsecond)
		at := now(t, client)
		require.False(t, at.Before(before))
		require.False(t, at.After(time.Now()))
		require.False(t, at.Before(last))
		last = at
		if at.Nanosecond()%int(time.Millisecond) == 0 {
			inMilliseconds++
		}
	}
	require.Less(t, inMilliseconds, readings/10)
}

func TestTimeWithinAScript(t *testing.T) {
	client := connect(t, start(t))
	micros, err := redis.NewScript(`
		local t = redis.call('TIME')
		return t[1] * 1000000 + t[2]`).Run(t.Context(), client, nil).Int64()
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.UnixMicro(micros), 5*time.Second)
}

// TIME and the TTLs come from two clocks of the server: this fails if one of
// them stops following real time.
func TestKeysExpireByTheClockOfTime(t *testing.T) {
	client := connect(t, start(t))
	const ttl = 200 * time.Millisecond
	// Generous, for machines that stall: a key set right after a stall is charged
	// for it. A clock that stands still, or ticks in seconds, still shows.
	const early, late = 150 * time.Millisecond, 5 * time.Second
	for _, command := range []string{"PX", "PEXPIRE", "PEXPIREAT"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			set := []any{"SET", command, 1, "PX", ttl.Milliseconds()}
			if command != "PX" {
				require.NoError(t, client.Set(t.Context(), command, 1, 0).Err())
			}
			before := now(t, client)
			switch command {
			case "PEXPIRE":
				set = []any{"PEXPIRE", command, ttl.Milliseconds()}
			case "PEXPIREAT":
				set = []any{"PEXPIREAT", command, before.Add(ttl).UnixMilli()}
			}
			require.NoError(t, client.Do(t.Context(), set...).Err())

			require.LessOrEqual(t, client.PTTL(t.Context(), command).Val(), ttl)
			require.Eventually(t, func() bool { return client.Exists(t.Context(), command).Val() == 0 }, late, time.Millisecond)
			require.GreaterOrEqual(t, now(t, client).Sub(before), ttl-early)
		})
	}
}

func TestScriptsRunByHashAndPublish(t *testing.T) {
	server := start(t)
	producer, consumer := connect(t, server), connect(t, server)
	news := consumer.Subscribe(t.Context(), "news")
	defer func() { require.NoError(t, news.Close()) }()
	_, err := news.Receive(t.Context()) // subscribed
	require.NoError(t, err)

	script := redis.NewScript(`
		redis.call('SET', KEYS[1], ARGV[1])
		return redis.call('PUBLISH', 'news', ARGV[1])`)
	require.NoError(t, script.Load(t.Context(), producer).Err())
	heard, err := script.EvalSha(t.Context(), producer, []string{"key"}, "hello").Int()
	require.NoError(t, err)
	require.Equal(t, 1, heard)

	message, err := news.ReceiveMessage(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hello", message.Payload)
	value, err := consumer.Get(t.Context(), "key").Result()
	require.NoError(t, err)
	require.Equal(t, "hello", value)
}

func TestServersKeepApart(t *testing.T) {
	one, two := connect(t, start(t)), connect(t, start(t))
	require.NoError(t, one.Set(t.Context(), "key", "value", 0).Err())
	require.ErrorIs(t, two.Get(t.Context(), "key").Err(), redis.Nil)
}

func TestCloseEndsEverything(t *testing.T) {
	server := start(t)
	client := connect(t, server)
	require.NoError(t, client.Ping(t.Context()).Err())
	address := server.Addr()
	server.Close()
	server.Close()

	listener, err := net.Listen("tcp", address) // the port is free again
	require.NoError(t, err)
	require.NoError(t, listener.Close())
}

// Expiry must not make each call of a script pay for every stored key.
func BenchmarkScriptBesideManyKeys(b *testing.B) {
	server, err := embedded.Start()
	require.NoError(b, err)
	defer server.Close()
	client, err := throttle.Open(server.URL())
	require.NoError(b, err)
	defer func() { require.NoError(b, client.Close()) }()

	pipe := client.Pipeline()
	for i := range 10_000 {
		pipe.Set(b.Context(), "key:"+strconv.Itoa(i), 1, time.Hour)
	}
	_, err = pipe.Exec(b.Context())
	require.NoError(b, err)
	script := redis.NewScript(`for i = 1, 10 do redis.call('HSET', KEYS[1], 'field', i) end`)
	for b.Loop() {
		if err := script.Run(b.Context(), client, []string{"hash"}).Err(); err != nil && !errors.Is(err, redis.Nil) {
			b.Fatal(err)
		}
	}
}
