package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker/httpjob"
)

// A job that is given up is told of, and a call that tells is not told of itself.
func TestFailureCallback(t *testing.T) {
	r := throttletest.StartRedis(t)
	told := make(chan failureNote, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
			return
		}
		var note failureNote
		body, _ := io.ReadAll(req.Body)
		if json.Unmarshal(body, &note) == nil {
			told <- note
		}
		w.WriteHeader(http.StatusGone)
	}))
	t.Cleanup(server.Close)
	s := begin(nil, "serve", "--listen", "none", "--allow-network", "127.0.0.0/8", "--redis", r.URL(),
		"--config", configFile(t, "http: {failure_callback: '"+server.URL+"/failed?token=SEC1'}"))
	q := openAt(t, r)
	job, err := httpjob.Request{URL: server.URL + "/gone"}.Job("k")
	require.NoError(t, err)
	job.ID = "a"
	_, err = q.Enqueue(t.Context(), job)
	require.NoError(t, err)
	note := <-told
	require.NotEmpty(t, note.At)
	note.At = ""
	require.Equal(t, failureNote{Key: "k", ID: "a", Type: httpjob.Type, Attempts: 1, Reason: "POST to " + server.Listener.Addr().String() + ": 410 Gone"}, note)
	require.Eventually(t, func() bool {
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		return stats.Dead == 2 && stats.Waiting+stats.Delayed+stats.InFlight == 0
	}, patience, 5*time.Millisecond)
	require.Empty(t, told)
	s.signals <- syscall.SIGTERM
	require.Zero(t, s.exit(t, patience))
	require.NotContains(t, s.stderr.String(), "SEC1")
}
