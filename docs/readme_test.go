// Package docs tests that the README and the pages beside it do what they say.
package docs

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

const patience = 60 * time.Second

const readme = "../README.md"

// snippets returns a page's code blocks of a language.
func snippets(t *testing.T, page, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	require.NotEmpty(t, found, "%s has no %s snippets", page, language)
	return found
}

// buildInto builds a package of this module and returns the program's path.
func buildInto(t *testing.T, dir, pkg string) string {
	t.Helper()
	program := filepath.Join(dir, filepath.Base(pkg))
	out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// program is the README's Go snippets, one after the other, in a program.
const (
	programHead = `package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/hibiken/asynq"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/worker"
)

func main() {
	log.Fatal(run(context.Background()))
}

func run(ctx context.Context) error {
`
	programTail = `
	<-ctx.Done()
	return nil
}
`
)

// buildSource vets and builds a program, and returns its path.
func buildSource(t *testing.T, source string) string {
	t.Helper()
	// A package of this module, so that its imports resolve, and out of its sight.
	dir, err := os.MkdirTemp(".", "_snippets")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	vet, err := exec.Command("go", "vet", "./"+dir).CombinedOutput()
	require.NoError(t, err, "%s", vet)
	return buildInto(t, t.TempDir(), "./"+dir)
}

func TestGoSnippetsRun(t *testing.T) {
	server := throttletest.StartRedis(t)
	source := programHead + strings.Join(snippets(t, readme, "go"), "\n") + programTail
	source = strings.ReplaceAll(source, "redis://127.0.0.1:6379/0", server.URL())

	lines := start(t, exec.Command(buildSource(t, source)))
	require.Regexp(t, `^invoice-42 1 \d{4}-`, next(t, lines))
	rest := []string{next(t, lines), next(t, lines), next(t, lines), next(t, lines)} // the worker and what sets it up print at once
	for _, want := range []string{
		`^invoice-42, attempt 1: \{"invoice": 42\}$`, `^tenant-\* 20/s burst 5 idle$`,
		`^(waiting 1|released 0|running 0|delayed 0) \d{4}-`, // nothing handles its type
		`^true 4 0s$`,
	} {
		require.True(t, slices.ContainsFunc(rest, regexp.MustCompile(want).MatchString), "%s is not in %q", want, rest)
	}
}

func TestShellSnippetsRun(t *testing.T) {
	server := throttletest.StartRedis(t)
	bodies := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	t.Cleanup(receiver.Close)
	programs := t.TempDir()
	buildInto(t, programs, "../cmd/throttled")
	buildInto(t, programs, "../cmd/enqueue")
	listen := freeAddress(t)
	here := strings.NewReplacer(
		"go run ./cmd/", programs+"/",
		"deploy/throttled.yaml", "../deploy/throttled.yaml",
		"redis://127.0.0.1:6379/0", server.URL(),
		"127.0.0.1:9000", receiver.Listener.Addr().String(),
		"127.0.0.1:8080", listen,
		"events.ndjson", filepath.Join(t.TempDir(), "events.ndjson"),
		"crm.svg", filepath.Join(t.TempDir(), "crm.svg"),
	)
	var ran []string
	outputs := make(map[string]string)
	for _, block := range snippets(t, readme, "sh") {
		for command := range strings.Lines(block) {
			command = strings.TrimSpace(command)
			switch {
			case strings.HasPrefix(command, "curl "):
				get(t, here.Replace(strings.TrimPrefix(command, "curl ")))
			case strings.HasPrefix(command, "go run ./cmd/throttled serve"):
				start(t, exec.Command("sh", "-c", "exec "+here.Replace(command)))
			case strings.HasPrefix(command, "go run ./cmd/enqueue"), strings.HasPrefix(command, "go run ./cmd/throttled"),
				strings.HasPrefix(command, "echo "), strings.HasPrefix(command, "seq "):
				switch {
				case strings.Contains(command, " verify "):
					departed(t, server.Client(), "crm", 30)
				case strings.Contains(command, " dead "):
					died(t, server.Client(), "fax", "f1")
				}
				cmd := exec.Command("sh", "-c", here.Replace(command))
				cmd.Env = append(os.Environ(), "WEIR_REDIS="+server.URL()) // in place of the default
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s: %s", command, out)
				outputs[command] = string(out)
			default:
				require.Contains(t, []string{"go run ./examples/webhooks", "make test"}, command, "nothing runs this command")
				continue
			}
			ran = append(ran, command)
		}
	}
	require.Len(t, ran, 47)
	require.Regexp(t, `(?m)^acme-mail +live +20/s +5 +100 +1000/h sliding, 9000/d fixed Europe/Berlin +acme `, outputs["go run ./cmd/throttled policy list"])
	require.Regexp(t, `(?m)^held +paused$`, outputs["go run ./cmd/throttled explain acme-mail"])
	require.Contains(t, outputs["go run ./cmd/throttled trail --limit 5 --json"], `"who":"on call","what":"resume","name":"acme-*"`)
	want := map[string]int{`{"invoice": 42}`: 1, "": 2, `{"n":1}`: 2}
	for n := range 40 {
		want[strconv.Itoa(n+1)] = 1
	}
	got := make(map[string]int)
	for range 45 {
		select {
		case body := <-bodies:
			got[body]++
		case <-time.After(patience):
			require.Fail(t, "a call did not arrive", "arrived: %v", got)
		}
	}
	require.Equal(t, want, got)
}

// died waits until a job is a dead letter.
func died(t *testing.T, client redis.UniversalClient, key, id string) {
	t.Helper()
	queue, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		job, err := queue.Job(t.Context(), key, id)
		return err == nil && job.State == throttle.Dead
	}, patience, 10*time.Millisecond, "%s did not die", id)
}

// departed waits until a key's history has n departures.
func departed(t *testing.T, client redis.UniversalClient, key string, n int) {
	t.Helper()
	queue, err := throttle.NewQueue(t.Context(), client, throttle.QueueConfig{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		h, err := queue.History(t.Context(), key)
		return err == nil && len(h.Departures) >= n
	}, patience, 10*time.Millisecond, "too few departed")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(url) //nolint:noctx // bounded by Eventually
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, patience, 20*time.Millisecond, "%s does not answer", url)
}

// start runs a command until the test ends and returns what it prints, by lines.
func start(t *testing.T, cmd *exec.Cmd) <-chan string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	lines := make(chan string, 100)
	var read sync.WaitGroup
	read.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
	})
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		read.Wait()
		_ = cmd.Wait() // ended by a signal
		if t.Failed() {
			t.Logf("%s: %s", cmd.Path, stderr.String())
		}
	})
	return lines
}

func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case line := <-lines:
		return line
	case <-ctx.Done():
		require.Fail(t, "nothing more was printed")
		return ""
	}
}

func TestNoTextIsLeftToWrite(t *testing.T) {
	for _, name := range []string{readme, "architecture.md", "limiters.md"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotRegexp(t, `(?m)^[A-Z]+$`, string(text), "%s has a placeholder", name)
	}
}
