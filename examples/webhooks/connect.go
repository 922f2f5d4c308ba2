package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/embedded"
)

// silent takes what go-redis says on its own: the errors that it returns say the
// same.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// openRedis connects to the Redis at url, or to an embedded one if there is none.
func openRedis(ctx context.Context, url string, notes io.Writer) (redis.UniversalClient, func(), error) {
	stop := func() {}
	if url == "" {
		server, err := embedded.Start()
		if err != nil {
			return nil, nil, err
		}
		url, stop = server.URL(), server.Close
		fmt.Fprintf(notes, "Redis is embedded at %s and keeps nothing.\n", url)
	}
	client, err := throttle.Open(url)
	if err != nil {
		stop()
		return nil, nil, notAURL(err)
	}
	closeAll := func() {
		_ = client.Close()
		stop()
	}
	if err := wantEmpty(ctx, client); err != nil {
		closeAll()
		return nil, nil, err
	}
	return client, closeAll, nil
}

// notAURL names the flag where nothing of its value can be shown.
func notAURL(err error) error {
	var refused *throttle.InvalidError
	if errors.As(err, &refused) && refused.Value == "…" {
		return &failure{exitInvalid, fmt.Errorf("--redis is not a Redis URL: want %s", refused.Allowed)}
	}
	return err
}

// wantEmpty refuses a Redis in use: setting the policies of this example would
// replace those that are stored there.
func wantEmpty(ctx context.Context, client redis.UniversalClient) error {
	n, err := client.DBSize(ctx).Result()
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	if n > 0 {
		return fmt.Errorf("--redis: the database holds %d keys, but this example wants an empty one, since it replaces the policies there: take another one, such as …/9, or empty it with FLUSHDB", n)
	}
	return nil
}
