//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// A process is throttled serve on its own.
type process struct {
	cmd    *exec.Cmd
	stderr *output
	ended  chan struct{}
	listen string // address of its endpoints
}

// serveProcess starts throttled serve and returns once it has started.
func serveProcess(t *testing.T, redisURL string, args ...string) *process {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	args = append([]string{"serve", "--redis", redisURL, "--listen", "127.0.0.1:0", "--allow-network", "127.0.0.0/8", "--log-format", "json"}, args...)
	p := &process{cmd: exec.Command(path, args...), stderr: new(output), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), actAsDaemon+"=1", "GORACE=atexit_sleep_ms=0") // the race detector sleeps before it exits
	p.cmd.Stderr = p.stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
		<-p.ended
		_ = stdin.Close()
		if t.Failed() {
			t.Logf("log of process %d:\n%s", p.cmd.Process.Pid, p.stderr)
		}
	})
	require.Eventually(t, func() bool {
		p.listen = p.stderr.attribute("started", "listen")
		return p.listen != "" || p.hasEnded()
	}, patience, 5*time.Millisecond)
	require.NotEmpty(t, p.listen, "it ended at its start:\n%s", p.stderr)
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// kill ends the process as a crash does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	<-p.ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// exit waits for the process to end and returns its exit code.
func (p *process) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		require.FailNow(t, "still running", "after %v:\n%s", within, p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) ready(t *testing.T) int {
	t.Helper()
	status, _ := get(t, "http://"+p.listen+"/readyz")
	return status
}

func openQueue(t *testing.T, r *throttletest.Redis) *throttle.Queue {
	t.Helper()
	q, err := throttle.NewQueue(t.Context(), r.Client(), throttle.QueueConfig{})
	require.NoError(t, err)
	return q
}

// enqueue puts n jobs for the receiver under a key and returns their ids.
func enqueue(t *testing.T, q *throttle.Queue, r *receiver, key string, n int) (ids []string) {
	t.Helper()
	jobs := make([]throttle.Job, n)
	for i := range jobs {
		jobs[i] = r.job(t, key, fmt.Sprintf("%s-%03d", key, i))
		ids = append(ids, jobs[i].ID)
	}
	_, err := q.EnqueueMany(t.Context(), jobs)
	require.NoError(t, err)
	return ids
}

// unfinished are the jobs that the queue still has.
func unfinished(t *testing.T, q *throttle.Queue, key string, ids []string) map[string]throttle.JobInfo {
	t.Helper()
	left := make(map[string]throttle.JobInfo)
	for _, id := range ids {
		info, err := q.Job(context.Background(), key, id)
		if errors.Is(err, throttle.ErrNoJob) {
			continue
		}
		require.NoError(t, err)
		left[id] = info
	}
	return left
}
