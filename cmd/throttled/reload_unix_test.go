//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// reloaded sends SIGHUP and returns the record that tells what came of it.
func (p *process) reloaded(t *testing.T) map[string]any {
	t.Helper()
	before := len(p.reloads())
	p.signal(t, syscall.SIGHUP)
	require.Eventually(t, func() bool { return len(p.reloads()) > before }, patience, time.Millisecond, "%s", p.stderr)
	require.Len(t, p.reloads(), before+1)
	record := p.reloads()[before]
	delete(record, "time")
	return record
}

// reloads are the records of all reloads so far.
func (p *process) reloads() (records []map[string]any) {
	for _, line := range p.stderr.lines() {
		var record map[string]any
		if json.Unmarshal([]byte(line), &record) != nil {
			continue
		}
		switch record["msg"] {
		case "reloaded", "reload refused", "reload failed":
			records = append(records, record)
		}
	}
	return records
}

func rewrite(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func requireLimit(t *testing.T, q *throttle.Queue, key, want string) {
	t.Helper()
	info, err := q.Key(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, want, info.Policy.Limit.String())
}

// A file with a problem never takes away what is in force, and a good one comes into
// force without a restart.
func TestHangupReloadsThePolicies(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	file := configFile(t, "policies: [{key: a, rate: 1/s}, {key: b, rate: 1/s}, {key: c, rate: 1/s}]\n")
	p := serveProcess(t, r.URL(), "--config", file, "--concurrency", "7")
	requireLimit(t, q, "a", "1/s burst 1")

	rewrite(t, file, "policies: [{key: a, rate: 2/s}, {key: b, rate: 1/s}, {key: d, rate: 4/s}]\n")
	require.Equal(t, map[string]any{
		"level": "INFO", "msg": "reloaded", "config": file, "policies": "3", "max_waiting": "as stored", "added": 1.0, "changed": 1.0, "removed": 1.0,
	}, p.reloaded(t))
	requireLimit(t, q, "a", "2/s burst 1")
	requireLimit(t, q, "c", throttle.DefaultPolicy.Limit.String())

	rewrite(t, file, "policies:\n- {key: a, rate: 9/s, parent: e}\n- {key: b, rate: 0/s}\nnope: 1\n")
	refused := p.reloaded(t)
	require.Equal(t, []any{
		file + `:3:18: policies[1].rate "0/s" is not allowed: want N/s, N/m, N/h, N/d or N/DURATION, such as 100/s or 1/24h, with N a whole number from 1 to 1000000000 and DURATION from 1ms to 8784h`,
		file + ":4:1: nope is not a known field: want dead_letters, http, max_waiting, policies, redis, shards, worker",
	}, refused["problems"])
	delete(refused, "problems")
	require.Equal(t, map[string]any{"level": "ERROR", "msg": "reload refused", "config": file}, refused)
	require.Equal(t, http.StatusOK, p.ready(t))
	requireLimit(t, q, "a", "2/s burst 1")
	requireLimit(t, q, "d", "4/s burst 1")

	require.NoError(t, os.Remove(file))
	require.Contains(t, p.reloaded(t)["problems"].([]any)[0], "no such file")
	requireLimit(t, q, "a", "2/s burst 1")

	// Flags win over the file, so what they give needs no restart.
	rewrite(t, file, "shards: 16\ndead_letters: {max: 5}\nworker: {lease: 1s, concurrency: 8}\npolicies: [{key: a, rate: 3/s}]\n")
	require.Equal(t, map[string]any{
		"level": "WARN", "msg": "reloaded", "config": file, "policies": "1", "max_waiting": "as stored", "added": 0.0, "changed": 1.0, "removed": 2.0,
		"needs_restart": []any{"dead_letters.max", "shards", "worker.lease"},
	}, p.reloaded(t))
	requireLimit(t, q, "a", "3/s burst 1")

	rewrite(t, file, "")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "reloaded", "config": file, "policies": "as stored", "max_waiting": "as stored"}, p.reloaded(t))
	requireLimit(t, q, "a", "3/s burst 1")

	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.exit(t, patience))
}

// The bound on what waits comes and goes with the file, and a file without it leaves it.
func TestHangupReloadsTheBound(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	require.NoError(t, q.SetMaxWaiting(t.Context(), 9))
	file := configFile(t, "")
	p := serveProcess(t, r.URL(), "--config", file)
	for _, step := range []struct {
		file, told string
		want       int64
	}{{"", "as stored", 9}, {"max_waiting: 7", "7", 7}, {"", "as stored", 7}, {"max_waiting: 0", "none", 0}} {
		rewrite(t, file, step.file)
		require.Equal(t, step.told, p.reloaded(t)["max_waiting"])
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, step.want, s.MaxWaiting)
	}
	rewrite(t, file, "max_waiting: 5\npolicies: [{key: a, rate: 1/s, parent: b}]\n")
	require.Equal(t, "reload refused", p.reloaded(t)["msg"])
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.MaxWaiting)
}

// A file may be good in itself and not go with what was set by hand.
func TestHangupWithPoliciesThatLiveOnesContradict(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	const both = "policies:\n- {key: up, rate: 5/s}\n- {key: up2, rate: 5/s, parent: up}\n"
	file := configFile(t, both)
	p := serveProcess(t, r.URL(), "--config", file)
	child := throttle.Policy{Key: "child", Limit: throttle.Limit{Rate: 1, Period: time.Second, Burst: 1}, Parent: "up2"}
	require.NoError(t, q.SetPolicy(t.Context(), child))

	rewrite(t, file, "policies: [{key: up, rate: 6/s}]\n")
	require.Equal(t, map[string]any{"level": "ERROR", "msg": "reload refused", "config": file, "problems": []any{
		file + `: the live policy of "child": parent "up2" is not allowed: want a key that has a policy of its own`,
	}}, p.reloaded(t))
	requireLimit(t, q, "up", "5/s burst 1")

	// What stands in the file is told with its place.
	require.NoError(t, q.SetPolicy(t.Context(), throttle.Policy{Key: "up", Limit: throttle.Limit{Rate: 1, Period: time.Minute, Burst: 1}}))
	rewrite(t, file, "policies:\n- {key: up, rate: 5/s}\n- {key: up2, rate: 5/s, parent: up, minimum: 2/s}\n")
	const want = ` "2/s" is not allowed: want at most the rate of parent "up", 1/m`
	require.Regexp(t, `^\[`+regexp.QuoteMeta(file)+`:3:46: policies\[1\].*minimum`+want+`\]$`, fmt.Sprint(p.reloaded(t)["problems"]))

	s := begin(nil, "serve", "--listen", "none", "--allow-network", "127.0.0.0/8", "--redis", r.URL(), "--config", file)
	require.Equal(t, exitInvalid, s.exit(t, patience), "nor does a daemon start with it")
	require.Contains(t, s.stderr.String(), file+":3:46: policies[1]")
}

func TestHangupWithoutRedis(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	file := configFile(t, "policies: [{key: a, rate: 1/s}]\n")
	p := serveProcess(t, r.URL(), "--config", file)
	require.NoError(t, r.Stop())
	rewrite(t, file, "policies: [{key: a, rate: 2/s}]\n")
	record := p.reloaded(t)
	require.Equal(t, "reload failed", record["msg"])
	require.Contains(t, record["error"], "connection refused")
	require.NoError(t, r.Restart())
	require.Equal(t, "reloaded", p.reloaded(t)["msg"])
	requireLimit(t, openQueue(t, r), "a", "2/s burst 1")
}

// Processes that do not store policies do not end at the signal either.
func TestHangupOfOthers(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	file := configFile(t, "policies: [{key: a, rate: 1/s}]\n")
	worker := serveProcess(t, r.URL(), "--config", file, "--worker-only")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "reloaded", "config": file, "policies": "as stored", "max_waiting": "as stored"}, worker.reloaded(t))
	requireLimit(t, openQueue(t, r), "a", throttle.DefaultPolicy.Limit.String())

	bare := serveProcess(t, r.URL())
	require.Equal(t, map[string]any{"level": "WARN", "msg": "reload refused", "problems": []any{"there is no config file"}}, bare.reloaded(t))
	require.Equal(t, http.StatusOK, bare.ready(t))
}
