package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/throttletest"
)

var scenarios = []scenario{
	{"one key", onRedis(oneKey)},
	{"100 keys", onRedis(manyKeys)},
	{"burst, idle, burst", onRedis(burst)},
	{"idle system", onRedis(idle)},
	{"cluster: one key", onCluster(oneKey)},
	{"cluster: 100 keys", onCluster(manyKeys)},
	{"two processes: one key", onProcesses(2, oneKey)},
	{"two processes: 100 keys", onProcesses(2, manyKeys)},
	{"workers stopped 30 s", onRedis(stopped)},
	{"killed", killed},
	{"failing at first", onRedis(failing)},
	{"live limit", onProcesses(3, liveLimit)},
	{"siblings", onRedis(siblings)},
	{"slow endpoint", onRedis(slowEndpoint)},
	{"lost workers", lostWorkers},
	{"settling", onRedis(settling)},
	{"quotas", onRedis(quotas)},
	{"an unknown limit", onRedis(unknownLimit)},
	{"told to rest", onRedis(toldToRest)},
	{"a dead endpoint", onRedis(deadEndpoint)},
	{"estimates", onRedis(estimates)},
	{"estimates across changes", onRedis(changes)},
	{"priorities", onRedis(priorities)},
	{"a million jobs", onRedis(million)},
	{"a million keys", onRedis(keyMillion)},
	{"half an hour, verified", onRedis(verified)},
	{"no effective limit", throughput},
	{"events from a file", events},
}

// starter puts the parts of a system to work on a Redis whose policies are set.
type starter func(s *system, url string) error

type body func(ctx context.Context, s *sheet, e *env) error

// env is what a scenario runs on.
type env struct {
	client redis.UniversalClient
	url    string
	start  starter
}

func inProcess(s *system, _ string) error { return s.start() }

func onRedis(run body) func(context.Context, *sheet) error {
	return func(ctx context.Context, s *sheet) error {
		r, err := throttletest.LaunchRedis(ctx, "")
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		return run(ctx, s, &env{client: r.Client(), url: r.URL(), start: inProcess})
	}
}

func onCluster(run body) func(context.Context, *sheet) error {
	return func(ctx context.Context, s *sheet) error {
		c, err := throttletest.LaunchCluster(ctx, "")
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		if err := run(ctx, s, &env{client: c.Client(), url: c.URL(), start: inProcess}); err != nil {
			return err
		}
		for i, node := range c.Nodes {
			n, err := node.Client().DBSize(ctx).Result()
			if err != nil {
				return err
			}
			s.atLeast(fmt.Sprintf("names on master %d", i+1), float64(n), 1)
		}
		return nil
	}
}
