package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// memory compares what a key takes in Redis.
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
		before, err := used(ctx, client)
		if err != nil {
			return err
		}
		for n := range keys {
			if _, err := d.decide(ctx, n); err != nil {
				return err
			}
		}
		after, err := used(ctx, client)
		if err != nil {
			return err
		}
		sizes[i] = (after - before) / keys
		t.add(d.name+", bytes of Redis for a key", sizes[i])
	}
	t.atMost("weir / the leaner peer, bytes", sizes[0]/min(sizes[1], sizes[2]), 1)
	return nil
}

func used(ctx context.Context, client redis.UniversalClient) (float64, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, "used_memory:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("the server does not tell its used_memory")
}
