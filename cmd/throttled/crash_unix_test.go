//go:build unix

package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

const (
	kills      = 3
	crashSetup = "policies: [{key: k, rate: 100/s, burst: 10}]\nworker: {lease: 1s, concurrency: 5}\n"
)

// slowly keeps calls under way for a moment, so that there are some at every kill.
func slowly(_ string, req *http.Request) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-req.Context().Done():
	}
}

// A worker that is killed has its jobs run by another: those it had sent a second
// time, those it had not once, and none gets lost. It has more jobs at hand than
// places to run them, so some of each kind are in its hands.
func TestKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	recv := newReceiver(t, slowly)
	config := configFile(t, crashSetup)
	serveProcess(t, r.URL(), "--config", config, "--scheduler-only")
	worker := serveProcess(t, r.URL(), "--config", config, "--worker-only")
	ids := enqueue(t, q, recv, "k", 200)

	inFlight := make(map[string]bool) // at some kill
	for kill := range kills {
		require.Eventually(t, func() bool { return recv.seen() >= 40*(kill+1) }, patience, time.Millisecond)
		worker.kill(t)
		for id, info := range unfinished(t, q, "k", ids) {
			inFlight[id] = inFlight[id] || info.State == throttle.Running
		}
		worker = serveProcess(t, r.URL(), "--config", config, "--worker-only")
	}
	requireAllSent(t, q, recv, ids)
	for _, id := range ids {
		if recv.timesOf(id) > 1 {
			require.True(t, inFlight[id], "%s was sent twice, and was in flight at no kill", id)
		}
	}
}

// A scheduler that is killed at any point loses no job and has none sent twice.
func TestKilledSchedulerLosesNothing(t *testing.T) {
	t.Parallel()
	r := throttletest.StartRedis(t)
	q := openQueue(t, r)
	recv := newReceiver(t, slowly)
	config := configFile(t, crashSetup)
	serveProcess(t, r.URL(), "--config", config, "--worker-only")
	scheduler := serveProcess(t, r.URL(), "--config", config, "--scheduler-only")
	ids := enqueue(t, q, recv, "k", 200)
	for kill := range kills {
		require.Eventually(t, func() bool { return recv.seen() >= 40*(kill+1) }, patience, time.Millisecond)
		scheduler.kill(t)
		scheduler = serveProcess(t, r.URL(), "--config", config, "--scheduler-only")
	}
	requireAllSent(t, q, recv, ids)
	for _, id := range ids {
		require.Equal(t, 1, recv.timesOf(id), id)
	}
}

func requireAllSent(t *testing.T, q *throttle.Queue, recv *receiver, ids []string) {
	t.Helper()
	require.Eventually(t, func() bool { return recv.seen() == len(ids) }, patience, 5*time.Millisecond)
	require.Eventually(t, func() bool { return len(unfinished(t, q, "k", ids)) == 0 }, patience, 50*time.Millisecond)
}
