package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func limitsOf(key, rate string, burst int64) map[string]throttle.Limit {
	return map[string]throttle.Limit{key: limit(rate, burst)}
}

// post calls the receiver as a worker does, until ctx ends.
func post(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"n":1}`))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// A caller that hangs up has no request open any more, and got no answer.
func TestReceiverNoticesAHangUp(t *testing.T) {
	release := make(chan struct{})
	r, err := newReceiver(func(a arrival) int {
		select {
		case <-a.gone:
		case <-release:
		}
		return http.StatusNoContent
	})
	require.NoError(t, err)
	defer r.close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	open := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.open["k"]
	}

	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	for _, id := range []string{"1", "2"} {
		go func() { ended <- post(ctx, client, r.url("k", id)) }()
	}
	require.Eventually(t, func() bool { return open() == 2 }, 10*time.Second, time.Millisecond)
	hangUp()
	require.Error(t, <-ended)
	require.Error(t, <-ended)
	require.Eventually(t, func() bool { return open() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 2, r.openAtOnce("k"))
	require.Zero(t, r.openAtOnce("k"), "none since the last look")
	require.Zero(t, r.served())

	go func() { ended <- post(t.Context(), client, r.url("k", "1")) }()
	require.Eventually(t, func() bool { return open() == 1 }, 10*time.Second, time.Millisecond)
	close(release)
	require.NoError(t, <-ended)
	require.Equal(t, 1, r.openAtOnce("k"))
	require.Equal(t, 1, r.served())
	require.Equal(t, 3, r.count())
	require.Equal(t, 2, r.distinct())
}

func TestAgainExplainsOnlyWhatAKillCut(t *testing.T) {
	at := func(id string, after time.Duration) throttletest.Event {
		return throttletest.Event{Key: "k", ID: id, At: noon.Add(after)}
	}
	kills := []time.Time{noon.Add(time.Second), noon.Add(5 * time.Second)}
	twice, unexplained := again([]throttletest.Event{
		at("cut", 900*time.Millisecond), at("once", time.Second), at("cut", 3*time.Second),
		at("cut twice", 800*time.Millisecond), at("cut twice", 4900*time.Millisecond), at("cut twice", 7*time.Second),
	}, kills, 300*time.Millisecond)
	require.Equal(t, 3, twice)
	require.Zero(t, unexplained)

	twice, unexplained = again([]throttletest.Event{at("planted", 2*time.Second), at("planted", 3*time.Second)}, kills, 300*time.Millisecond)
	require.Equal(t, 1, twice)
	require.Equal(t, 1, unexplained)
}
