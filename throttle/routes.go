package throttle

import "sync"

// routes remembers where keys belong that are in another shard than the one their
// name hashes to: that of the family they are part of. It is what scripts answered;
// a wrong entry costs one more call.
type routes struct {
	mu sync.RWMutex
	to map[string]int
}

// mostRoutes bounds the memory; beyond it all are forgotten and learned anew.
const mostRoutes = 100_000

func (r *routes) find(key string) (shard int, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	shard, ok = r.to[key]
	return shard, ok
}

func (r *routes) learn(key string, shard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil || len(r.to) >= mostRoutes {
		r.to = make(map[string]int)
	}
	r.to[key] = shard
}

func (r *routes) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.to, key)
}
