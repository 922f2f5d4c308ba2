package throttle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// store is a connection to the stored state: what the producer, the scheduler and
// the worker side of one process share.
type store struct {
	client  redis.UniversalClient
	shards  int
	scripts *script.Set
	routes  *routes

	mu       sync.Mutex
	kin      bool // whether any policy has, or had, a parent
	kinAsked time.Time
}

// Numbers of shards.
const (
	DefaultShards = 16 // of a Redis that nobody has used yet
	MaxShards     = 100
)

// openStore checks that the server keeps what it is given and that the number of
// shards is the one the state was begun with.
func openStore(ctx context.Context, client redis.UniversalClient, shards int, scripts *script.Set) (*store, error) {
	if client == nil {
		return nil, invalid("client", "nil", "a Redis client, see Open")
	}
	if shards < 0 || shards > MaxShards {
		return nil, invalid("shards", shards, "1 to %d, or 0 for the number that is stored", MaxShards)
	}
	if err := checkEviction(ctx, client); err != nil {
		return nil, err
	}
	first := shards
	if first == 0 {
		first = DefaultShards
	}
	if err := client.HSetNX(ctx, script.MetaKey, "shards", first).Err(); err != nil {
		return nil, fmt.Errorf("redis is not usable: %w", err)
	}
	text, err := client.HGet(ctx, script.MetaKey, "shards").Result()
	if err != nil {
		return nil, fmt.Errorf("redis is not usable: %w", err)
	}
	stored, err := strconv.Atoi(text)
	if err != nil || stored < 1 || stored > MaxShards {
		return nil, fmt.Errorf("redis is not usable: %s says %q shards: want 1 to %d", script.MetaKey, text, MaxShards)
	}
	if shards != 0 && shards != stored {
		return nil, invalid("shards", shards, "%d, the number this Redis was set up with; it cannot change while jobs are stored", stored)
	}
	return &store{client: client, shards: stored, scripts: scripts, routes: &routes{}}, nil
}

// checkEviction refuses a server that may throw queued jobs away. A server that
// does not tell is taken as it is.
func checkEviction(ctx context.Context, client redis.UniversalClient) error {
	return eachServer(ctx, client, func(ctx context.Context, c redis.UniversalClient) error {
		info, err := c.Info(ctx, "memory").Result()
		var refused redis.Error
		if errors.As(err, &refused) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("redis is not reachable: %w", err)
		}
		limit, policy := infoField(info, "maxmemory"), infoField(info, "maxmemory_policy")
		if limit != "" && limit != "0" && policy != "noeviction" {
			return invalid("redis maxmemory-policy", policy,
				"noeviction: with maxmemory %s it may evict queued jobs", limit)
		}
		return nil
	})
}

// eachServer calls f for every server that holds data.
func eachServer(ctx context.Context, client redis.UniversalClient, f func(context.Context, redis.UniversalClient) error) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return f(ctx, c) })
	}
	return f(ctx, client)
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func (s *store) run(ctx context.Context, calls ...*script.Call) error {
	return script.Run(ctx, s.client, calls...)
}

// natural is the shard that a key hashes to.
func (s *store) natural(key string) int { return shardOf(key, s.shards) }

// shard is where a key belongs, as far as is known here.
func (s *store) shard(key string) int {
	if shard, ok := s.routes.find(key); ok {
		return shard
	}
	return s.natural(key)
}

// learn takes in where a script said that a key belongs.
func (s *store) learn(key string, home int) {
	if home == s.natural(key) {
		s.routes.forget(key)
	} else if home >= 0 && home < s.shards {
		s.routes.learn(key, home)
	}
}

// mostHops bounds how often a call follows a key from shard to shard while its
// policy is being changed.
const mostHops = 10

// follow makes a call about a key where the key belongs. home reads from the reply
// where that is.
func (s *store) follow(ctx context.Context, key string, call func(shard int) *script.Call, home func(shard int, c *script.Call) int) error {
	for hop := range mostHops {
		pauseBeforeHop(ctx, hop)
		shard := s.shard(key)
		c := call(shard)
		if err := s.run(ctx, c); err != nil {
			return err
		}
		at := home(shard, c)
		if at == shard {
			return nil
		}
		s.learn(key, at)
	}
	return errHops
}

// seek makes a call about one job where its key belongs and, if it is not found there, in
// every shard in which jobs of the key may be left since its family moved; then moving is
// true. found reads from the reply whether it was there, and where the key belongs.
func (s *store) seek(ctx context.Context, key string, call func(shard int, moving bool) *script.Call, found func(c *script.Call) (home int, ok bool)) error {
	ok := false
	err := s.follow(ctx, key, func(shard int) *script.Call {
		return call(shard, false)
	}, func(_ int, c *script.Call) (home int) {
		home, ok = found(c)
		return home
	})
	if err != nil || ok {
		return err
	}
	families, err := s.knownFamilies(ctx)
	if err != nil || !families {
		return err
	}
	for shard := range s.shards {
		c := call(shard, true)
		if err := s.run(ctx, c); err != nil {
			return err
		}
		if _, ok = found(c); ok {
			return nil
		}
	}
	return nil
}

// knownFamilies tells whether any policy has, or ever had, a parent, as known for a second
// at most.
func (s *store) knownFamilies(ctx context.Context) (bool, error) {
	s.mu.Lock()
	kin, fresh := s.kin, s.kin || time.Since(s.kinAsked) < time.Second
	s.mu.Unlock()
	if fresh {
		return kin, nil
	}
	kin, err := s.families(ctx)
	if err == nil {
		s.mu.Lock()
		s.kin, s.kinAsked = kin, time.Now()
		s.mu.Unlock()
	}
	return kin, err
}

// pauseBeforeHop lets a change of policies get further that has shards refer to each
// other.
func pauseBeforeHop(ctx context.Context, hop int) {
	if hop > 1 {
		sleep(ctx, backoff(hop))
	}
}

var errHops = errors.New("the key is moving to another shard: try again")

// newName makes a short random name for a process' part in the stored state.
func newName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, says crypto/rand
	return hex.EncodeToString(b[:])
}
