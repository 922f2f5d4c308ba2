// Package config is what the daemon is set up with: its file, in YAML, and the
// defaults of what the file leaves out.
//
// A file is checked as a whole, and all that is wrong with it is reported at once,
// each with its line and column; only of contradictions within a policy, and then
// between policies, the first one alone. What is not known is refused: a misspelt limit
// that was passed over would be a limit that is not kept.
package config

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker"
	"github.com/weirq/weir/worker/httpjob"
)

// Config is a file with its defaults filled in. Its values are within the bounds
// that the file's fields have, apart from Redis, which is checked when it is used.
type Config struct {
	Redis  string // URL; empty means an embedded one
	Shards int    // 0 means as many as are stored, throttle.DefaultShards if none are
	// Policies replace those of the config file that are stored. nil leaves those as
	// they are; an empty list removes them. They go together: throttle.ValidatePolicies
	// finds nothing wrong with them.
	Policies []throttle.Policy
	// MaxWaiting bounds the jobs that wait in all keys together; 0 means no bound. nil
	// leaves the bound that is stored as it is.
	MaxWaiting  *int64
	DeadLetters throttle.Retention
	Worker      Worker
	HTTP        HTTP

	origins map[string]string // of the fields that were given, by path
}

// Worker is the part about running jobs.
type Worker struct {
	Concurrency     int
	Pools           map[string]int // asynq queues and their priorities
	ShutdownTimeout time.Duration
	Timeout         time.Duration
	Lease           time.Duration
	Retry           worker.RetryPolicy
}

// HTTP is the part about the daemon's own endpoints and the calls that it makes.
type HTTP struct {
	Listen          string         // host:port; empty means nowhere
	AllowNetworks   []netip.Prefix // that calls may reach although they are not public
	Proxy           string         // for calls: NoProxy, EnvironmentProxy or a URL
	FailureCallback string         // URL that is told of jobs that are given up; empty for none
}

// Default is the configuration of an empty file.
func Default() Config {
	return Config{
		DeadLetters: throttle.Retention{Max: throttle.DefaultMaxDead, Age: throttle.DefaultDeadAge},
		Worker: Worker{
			Concurrency:     500,
			Pools:           map[string]int{throttle.DefaultPool: 1},
			ShutdownTimeout: 10 * time.Second,
			Timeout:         30 * time.Second,
			Lease:           30 * time.Second,
			Retry:           worker.RetryPolicy{Base: time.Second, Cap: 10 * time.Minute, MaxAttempts: 10},
		},
		HTTP:    HTTP{Listen: "127.0.0.1:8080", Proxy: NoProxy},
		origins: make(map[string]string),
	}
}

// Server is what a worker.Server is made with. It has no logger and no registerer.
func (w Worker) Server() worker.Config {
	return worker.Config{
		Concurrency: w.Concurrency, Pools: maps.Clone(w.Pools), ShutdownTimeout: w.ShutdownTimeout,
		Timeout: w.Timeout, Lease: w.Lease, Retry: w.Retry,
	}
}

// Handler is what an httpjob.Handler is made with.
func (h HTTP) Handler() httpjob.Config {
	return httpjob.Config{AllowNetworks: slices.Clone(h.AllowNetworks), Proxy: h.proxy()}
}

// Set gives the field at path, such as "worker.concurrency", a value that stands
// somewhere else than in the file. from names that place in errors.
func (c *Config) Set(path, text, from string) error {
	f, known := c.fields()[path]
	if !known {
		return fmt.Errorf("%s sets %s, which is not a field with one value", from, path)
	}
	if !f.set(text) {
		given := from
		if !f.secret {
			given += " " + quote(text)
		}
		return fmt.Errorf("%s is not allowed: want %s", given, f.want)
	}
	c.origins[path] = from
	return nil
}

// Origin tells where the value of the field at path was given: the from of Set, or
// file:line:column. It is empty for a default.
func (c *Config) Origin(path string) string { return c.origins[path] }

// Locate tells where in the file the field of a policy stands that an error is about,
// as [throttle.Queue.SetPolicies] returns it: file:line:column. It is empty for other
// errors.
func (c *Config) Locate(err error) string {
	var refused *throttle.InvalidError
	if !errors.As(err, &refused) {
		return ""
	}
	for path := refused.Field; path != ""; path = above(path) {
		if at := c.origins[path]; at != "" {
			return at
		}
	}
	return ""
}

// Changed lists the fields in which two configurations differ, by their paths and in the
// order of those; apart from what a running process takes on, which is the policies and
// the bound on what waits.
func Changed(a, b Config) []string {
	var paths []string
	others := b.fields()
	for path, f := range a.fields() {
		if path != maxWaitingPath && f.value() != others[path].value() {
			paths = append(paths, path)
		}
	}
	if !maps.Equal(a.Worker.Pools, b.Worker.Pools) {
		paths = append(paths, poolsPath)
	}
	slices.Sort(paths)
	return paths
}
