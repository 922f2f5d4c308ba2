//go:build unix

package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// requirePace checks what arrived under key k: every id once, and never more than
// the limit lets through, but for one job that the network may move and for what
// this process wrote down late.
func requirePace(t *testing.T, recv *receiver, rate string, burst int64, ids []string, bounds throttletest.Bounds) {
	t.Helper()
	limit, err := throttle.ParseLimit(rate, burst)
	require.NoError(t, err)
	reports, err := throttletest.Measure(
		map[string]throttle.Limit{"k": limit}, recv.arrivals(), map[string][]string{"k": ids})
	require.NoError(t, err)
	stall := recv.longestStall()
	bounds.MaxExcess = 1 + float64(stall)/float64(limit.Interval())
	require.NoError(t, reports.Check(bounds), "stalled for %v\n%s", stall, reports)
}

// Several daemons are bound by a limit together, not each.
func TestDaemonsShareALimit(t *testing.T) {
	r := throttletest.StartRedis(t)
	recv := newReceiver(t, nil)
	config := configFile(t, "policies: [{key: k, rate: 10/s, burst: 10}]\n")
	for range 3 {
		serveProcess(t, r.URL(), "--config", config)
	}
	ids := enqueue(t, openQueue(t, r), recv, "k", 50)
	require.Eventually(t, func() bool { return recv.seen() == len(ids) }, patience, 5*time.Millisecond)
	requirePace(t, recv, "10/s", 10, ids, throttletest.Bounds{MinRatio: 0.9})
}

// A daemon that is stopped for longer than its leases and then goes on finds its
// jobs given to the other one: it neither sends them again nor catches up.
func TestStoppedDaemonDoesNotSendTwice(t *testing.T) {
	t.Parallel()
	const stopped = 6 * time.Second
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	recv := newReceiver(t, nil)
	config := configFile(t, "policies: [{key: k, rate: 10/s, burst: 1}]\nworker: {lease: 2s}\n")
	p := serveProcess(t, r.URL(), "--config", config)
	serveProcess(t, r.URL(), "--config", config)
	ids := enqueue(t, q, recv, "k", 100)

	// Between two slots, when no call is under way: a call that is cut may be made
	// again.
	require.Eventually(t, func() bool {
		return recv.seen() >= 10 && recv.quiet(40*time.Millisecond)
	}, patience, time.Millisecond)
	p.signal(t, syscall.SIGSTOP)
	from, before := time.Now(), recv.seen()
	require.Eventually(t, func() bool { return time.Since(from) >= stopped }, patience, 10*time.Millisecond)
	p.signal(t, syscall.SIGCONT)
	require.Greater(t, recv.seen(), before+20, "the other one goes on")

	requireAllSent(t, q, recv, ids)
	requirePace(t, recv, "10/s", 1, ids, throttletest.Bounds{})
}
