package webhook

import (
	"sync"
	"time"
)

// cacheTime is for how long a handler takes an endpoint as it was: a burst of events to one is
// one look-up. A change is felt that much later at most.
const cacheTime = 2 * time.Second

// cacheSize bounds the endpoints that are remembered.
const cacheSize = 10_000

// A cache remembers endpoints for a while. The zero cache is empty.
type cache struct {
	mu      sync.Mutex
	entries map[string]cached
}

type cached struct {
	endpoint Endpoint
	read     time.Time
}

func (c *cache) get(id string, now time.Time) (Endpoint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[id]
	age := now.Sub(entry.read)
	return entry.endpoint, ok && age >= 0 && age < cacheTime // below zero, the clock was set back
}

func (c *cache) put(e Endpoint, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= cacheSize {
		c.entries = make(map[string]cached) // those in use are back at once
	}
	c.entries[e.ID] = cached{e, now}
}
