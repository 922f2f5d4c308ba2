package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// patience bounds what the tests wait for; it is far more than anything takes.
const patience = 60 * time.Second

// A session is a run of the program inside of the test.
type session struct {
	stdout, stderr output
	signals        chan os.Signal
	code           chan int
}

// begin runs the program with an environment and arguments.
func begin(env map[string]string, args ...string) *session {
	s := &session{signals: make(chan os.Signal, 2), code: make(chan int, 1)}
	lookup := func(name string) string { return env[name] }
	go func() { s.code <- run(context.Background(), args, lookup, &s.stdout, &s.stderr, s.signals) }()
	return s
}

func (s *session) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case code := <-s.code:
		return code
	case <-time.After(within):
		require.FailNow(t, "still running", "after %v:\n%s", within, &s.stderr)
		return 0
	}
}

// serveHere runs throttled serve until the test ends and returns once it has
// started.
func serveHere(t *testing.T, args ...string) *session {
	t.Helper()
	s := begin(nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--allow-network", "127.0.0.0/8", "--log-format", "json"}, args...)...)
	t.Cleanup(func() {
		s.signals <- syscall.SIGTERM
		require.Zero(t, s.exit(t, patience))
	})
	require.Eventually(t, func() bool { return s.stderr.attribute("started", "parts") != "" }, patience, time.Millisecond)
	return s
}

func (s *session) url() string { return "http://" + s.stderr.attribute("started", "listen") }

// get returns status 0 if nobody answers.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, b.String()
}

// output is what a process or a run has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lines are those that are complete.
func (o *output) lines() []string {
	text := o.String()
	return strings.Split(text[:strings.LastIndexByte(text, '\n')+1], "\n")
}

// attribute finds the attribute of the first JSON record with a message.
func (o *output) attribute(message, name string) string {
	for line := range bytes.Lines([]byte(o.String())) {
		var record map[string]any
		if json.Unmarshal(line, &record) == nil && record["msg"] == message {
			return fmt.Sprint(record[name])
		}
	}
	return ""
}

// configFile writes a file and returns its name.
func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "throttled.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func queueAt(t *testing.T, url string) *throttle.Queue {
	t.Helper()
	client, err := throttle.Open(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	q, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	return q
}
