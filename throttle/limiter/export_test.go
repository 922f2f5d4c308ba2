package limiter

import "github.com/redis/go-redis/v9"

// NewRedisWithClock is NewRedis with another clock than the server's: Lua that makes a local now,
// µs since 1970.
func NewRedisWithClock(client redis.UniversalClient, c RedisConfig, clock string) *Redis {
	return newRedis(client, c, clock)
}

// MemoryKeys is how many keys a limiter in memory holds.
func MemoryKeys(l *Limiter) int {
	n := 0
	s := l.space.(memoryLimiter).keys
	for i := range s.shards {
		n += len(s.shards[i].keys)
	}
	return n
}
