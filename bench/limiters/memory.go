package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// memory compares what a key takes in Redis: its name, its value and their entry, by the server's own
// count. The entry of its expiry, which all have, comes on top.
func memory(ctx context.Context, client redis.UniversalClient, t *table) error {
	all, err := deciders(client)
	if err != nil {
		return err
	}
	sizes := make([]float64, 3)
	for i, d := range all[:3] {
		if err := client.FlushAll(ctx).Err(); err != nil {
			return err
		}
		for n := range 5 * keys { // several times, so that none is forgotten meanwhile
			if _, err := d.decide(ctx, n); err != nil {
				return err
			}
		}
		names, err := client.Keys(ctx, "*").Result()
		if err != nil {
			return err
		}
		if len(names) != keys {
			return fmt.Errorf("%s: there are %d keys in place of %d", d.name, len(names), keys)
		}
		for _, name := range names {
			bytes, err := client.MemoryUsage(ctx, name, 0).Result()
			if err != nil {
				return err
			}
			sizes[i] += float64(bytes) / keys
		}
		t.add(d.name+", bytes of Redis for a key", sizes[i])
	}
	t.atMost("weir / the leaner peer, bytes", sizes[0]/min(sizes[1], sizes[2]), 1)
	return nil
}
