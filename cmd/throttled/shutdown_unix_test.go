//go:build unix

package main

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker/httpjob"
)

const burst20 = "policies: [{key: k, rate: 1000/s, burst: 20}]\n"

// What ends within the shutdown timeout is done; what does not is back in line with
// no attempt counted, and the next process sends it.
func TestShutdownIsBoundedAndLosesNothing(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	goOn, next := make(chan struct{}), make(chan struct{})
	recv := newReceiver(t, func(id string, req *http.Request) {
		release := goOn
		if id >= "k-015" {
			release = next
		}
		select {
		case <-release:
		case <-req.Context().Done():
		}
	})
	config := configFile(t, burst20)
	p := serveProcess(t, r.URL(), "--config", config, "--shutdown-timeout", timeout.String())
	ids := enqueue(t, q, recv, "k", 20)
	require.Eventually(t, func() bool { return recv.seen() == 20 }, patience, time.Millisecond)
	require.Equal(t, http.StatusOK, p.ready(t))

	asked := time.Now()
	p.signal(t, syscall.SIGTERM)
	require.Eventually(t, func() bool { return p.ready(t) == http.StatusServiceUnavailable }, timeout, time.Millisecond)
	status, _ := get(t, "http://"+p.listen+"/healthz")
	require.Equal(t, http.StatusOK, status, "it lives while it drains")
	close(goOn)
	require.Zero(t, p.exit(t, patience))
	took := time.Since(asked)
	require.GreaterOrEqual(t, took, timeout, "the jobs that hang had their time")
	require.Less(t, took-recv.longestStall(), timeout+time.Second)

	left := unfinished(t, q, "k", ids)
	require.Len(t, left, 5)
	for id, info := range left {
		require.GreaterOrEqual(t, id, "k-015")
		require.Equal(t, throttle.Waiting, info.State)
		require.Zero(t, info.Attempts)
	}

	close(next)
	serveProcess(t, r.URL(), "--config", config)
	require.Eventually(t, func() bool { return len(unfinished(t, q, "k", ids)) == 0 }, patience, 5*time.Millisecond)
	for i, id := range ids {
		want := 1
		if i >= 15 {
			want = 2
		}
		require.Equal(t, want, recv.timesOf(id), id)
	}
}

func TestIdleProcessStopsAtOnce(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := serveProcess(t, r.URL())
		p.signal(t, s)
		require.Zero(t, p.exit(t, 5*time.Second), "long before the timeout")
		require.Equal(t, "signal: "+s.String(), p.stderr.attribute("draining", "cause"))
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	recv := newReceiver(t, func(_ string, req *http.Request) { <-req.Context().Done() })
	p := serveProcess(t, r.URL(), "--shutdown-timeout", "1m")
	enqueue(t, openQueue(t, r), recv, "k", 1)
	require.Eventually(t, func() bool { return recv.seen() == 1 }, patience, time.Millisecond)

	asked := time.Now()
	p.signal(t, syscall.SIGTERM)
	require.Eventually(t, func() bool {
		return p.ready(t) == http.StatusServiceUnavailable && time.Since(asked) > 2*echo
	}, patience, time.Millisecond)
	asked = time.Now()
	p.signal(t, syscall.SIGTERM)
	require.Equal(t, exitForced, p.exit(t, patience))
	require.Less(t, time.Since(asked)-recv.longestStall(), time.Second)
	require.Contains(t, p.stderr.String(), "ended at once by a second signal")
}

// With Redis stalled nothing can be given back: the leases do it later.
func TestShutdownIsBoundedWithoutRedis(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	recv := newReceiver(t, func(_ string, req *http.Request) { <-req.Context().Done() })
	p := serveProcess(t, r.URL(), "--shutdown-timeout", "1s")
	enqueue(t, openQueue(t, r), recv, "k", 1)
	require.Eventually(t, func() bool { return recv.seen() == 1 }, patience, time.Millisecond)

	require.NoError(t, r.Pause())
	asked := time.Now()
	p.signal(t, syscall.SIGTERM)
	require.Equal(t, exitFailed, p.exit(t, patience))
	require.Less(t, time.Since(asked)-recv.longestStall(), 2*time.Second)
	require.Contains(t, p.stderr.String(), "not drained in time")
}

// Redis is not needed to live, only to be ready.
func TestReadinessFollowsRedis(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	p := serveProcess(t, r.URL())
	ready := func() int { return p.ready(t) }
	require.Equal(t, http.StatusOK, ready())
	require.NoError(t, r.Stop())
	require.Eventually(t, func() bool { return ready() == http.StatusServiceUnavailable }, patience, 5*time.Millisecond)
	status, _ := get(t, "http://"+p.listen+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, r.Restart())
	require.Eventually(t, func() bool { return ready() == http.StatusOK }, patience, 5*time.Millisecond)
}

// Every attempt shows at level debug, without what may be secret.
func TestDebugShowsEachAttempt(t *testing.T) {
	t.Parallel()
	const secret = "S3CRET"
	r := throttletest.StartRedis(t, "--requirepass", secret)
	recv := newReceiver(t, nil)
	p := serveProcess(t, r.URL(), "--log-level", "debug", "--config", configFile(t, burst20))
	job, err := httpjob.Request{
		URL:     strings.Replace(recv.server.URL, "http://", "http://user:"+secret+"@", 1) + "/k/one?token=" + secret,
		Headers: map[string]string{"Authorization": secret},
		Body:    []byte(secret),
	}.Job("k")
	require.NoError(t, err)
	job.ID = "one"
	_, err = openQueue(t, r).Enqueue(t.Context(), job)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.stderr.attribute("attempt", "id") == "one" }, patience, time.Millisecond)
	require.Equal(t, "done", p.stderr.attribute("attempt", "outcome"))
	require.Equal(t, "1", p.stderr.attribute("attempt", "attempt"))
	require.NotContains(t, p.stderr.String(), secret)
	require.Equal(t, fmt.Sprintf("redis://%s/0", r.Addr()), p.stderr.attribute("started", "redis"))
}
