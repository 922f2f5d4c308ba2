package throttletest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNoRedisServer says that there is no redis-server to start.
var ErrNoRedisServer = errors.New("redis-server is not on the PATH: install it with the system's package manager " +
	"(apt-get install redis-server, dnf install redis, apk add redis, brew install redis), or run make test, which does so")

// A Redis is a private redis-server on 127.0.0.1. Its methods may be called from
// several goroutines.
type Redis struct {
	spec     spec
	port     int
	password string
	client   redis.UniversalClient

	mu      sync.Mutex
	process *process
	closed  bool
}

// LaunchRedis starts a redis-server in dir and returns once it answers. An empty
// dir is a new temporary one that Close removes. args go to the server as they
// are ("--appendonly", "yes"); without any, it keeps nothing on disk. Its port,
// address and log file are not theirs to choose. ctx bounds the start only.
//
// Without a redis-server the error is [ErrNoRedisServer].
func LaunchRedis(ctx context.Context, dir string, args ...string) (*Redis, error) {
	return launch(ctx, spec{dir: dir, args: args})
}

// spec is what a server is started with, again and again.
type spec struct {
	dir       string
	temporary bool     // dir is ours to remove
	config    string   // file that the server reads first and may rewrite; empty for none
	args      []string // of the caller
	bus       bool     // it is a node of a cluster
}

func launch(ctx context.Context, s spec) (*Redis, error) {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "redis-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for redis-server: %w", err)
		}
		s.dir, s.temporary = dir, true
	}
	// Between the look for a free port and the start somebody may take it.
	var failed error
	for range 10 {
		r, err := launchOnce(ctx, s)
		if err == nil {
			return r, nil
		}
		failed = err
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	if s.temporary {
		failed = errors.Join(failed, os.RemoveAll(s.dir))
	}
	return nil, failed
}

func launchOnce(ctx context.Context, s spec) (*Redis, error) {
	port, err := freePort(s.bus)
	if err != nil {
		return nil, err
	}
	r := &Redis{spec: s, port: port, password: s.password()}
	r.client = newClient(redis.UniversalOptions{Addrs: []string{r.Addr()}, Password: r.password})
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.client.Close())
	}
	return r, nil
}

// password is the one that the arguments ask for.
func (s spec) password() string {
	for i, arg := range s.args[:max(0, len(s.args)-1)] {
		if arg == "--requirepass" {
			return s.args[i+1]
		}
	}
	return ""
}

// argv puts the defaults before the caller's arguments and what must hold after
// them: the last one counts.
func (s spec) argv(port int) []string {
	var argv []string
	if s.config != "" {
		argv = append(argv, s.config)
	} else {
		argv = append(argv, "--save", "", "--appendonly", "no", "--shutdown-timeout", "0")
	}
	argv = append(argv, s.args...)
	return append(argv, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--daemonize", "no", "--logfile", "")
}

func newClient(o redis.UniversalOptions) redis.UniversalClient {
	o.ContextTimeoutEnabled = true // otherwise a context's deadline does not reach a command under way
	return redis.NewUniversalClient(&o)
}

// Addr is host:port.
func (r *Redis) Addr() string { return address(r.port) }

// URL is a redis:// URL of database 0, with the password if the server has one.
func (r *Redis) URL() string {
	u := url.URL{Scheme: "redis", Host: r.Addr(), Path: "/0"}
	if r.password != "" {
		u.User = url.UserPassword("", r.password)
	}
	return u.String()
}

// Client is one client for all callers. It ends with Close; do not close it.
func (r *Redis) Client() redis.UniversalClient { return r.client }

// Dir is where the server keeps its files.
func (r *Redis) Dir() string { return r.spec.dir }

// Pid is the process id of the server, 0 when it is stopped.
func (r *Redis) Pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process == nil || r.process.ended() {
		return 0
	}
	return r.process.cmd.Process.Pid
}

// Stop ends the server the orderly way: it writes what its persistence asks for.
// A stopped server is left as it is. Restart starts it again.
func (r *Redis) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end((*process).stop)
}

// Kill ends the server as a crash does.
func (r *Redis) Kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end((*process).kill)
}

func (r *Redis) end(how func(*process) error) error {
	if r.process == nil {
		return nil
	}
	if err := how(r.process); err != nil {
		return fmt.Errorf("stop redis-server at %s: %w", r.Addr(), err)
	}
	r.process = nil
	return nil
}

// Restart stops the server if it runs, starts it with the same port, directory
// and arguments, and returns once it answers, its data loaded.
func (r *Redis) Restart() error {
	if err := r.Stop(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return waitFor(ctx, "a restart", func(ctx context.Context) (bool, error) {
		err := r.start(ctx)
		return !errors.Is(err, errPortTaken), err // somebody may hold the port for a moment
	})
}

// Pause halts the server as it stands: connections stay open and nothing is
// answered until Resume. Stop and Kill work meanwhile.
func (r *Redis) Pause() error { return r.signal("pause", pauseSignal) }

// Resume lets a paused server go on.
func (r *Redis) Resume() error { return r.signal("resume", resumeSignal) }

func (r *Redis) signal(verb string, s os.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s == nil:
		return fmt.Errorf("%s redis-server at %s: %w", verb, r.Addr(), errors.ErrUnsupported)
	case r.process == nil || r.process.ended():
		return fmt.Errorf("%s redis-server at %s: it is not running", verb, r.Addr())
	}
	return r.process.signal(s)
}

// Close stops the server for good, closes its client and removes the directory
// if that was a temporary one. Closing again does nothing.
func (r *Redis) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	errs := []error{r.end((*process).stop), r.client.Close()}
	if r.spec.temporary {
		errs = append(errs, os.RemoveAll(r.spec.dir))
	}
	return errors.Join(errs...)
}

var errPortTaken = errors.New("port taken")

// start runs the server and waits until it answers. If it fails, nothing is left
// running, and the error is errPortTaken if another port would help.
func (r *Redis) start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return fmt.Errorf("start redis-server at %s: it was closed", r.Addr())
	case r.process != nil: // another Restart was faster
		return nil
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrNoRedisServer, err)
	}
	log, err := os.OpenFile(filepath.Join(r.spec.dir, "redis.log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	defer func() { _ = log.Close() }()
	said, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}

	p, err := startProcess(path, r.spec.argv(r.port), r.spec.dir, log)
	if err != nil {
		return err
	}
	err = waitFor(ctx, "redis-server at "+r.Addr(), func(ctx context.Context) (bool, error) {
		if p.ended() {
			return true, whyEnded(log, said)
		}
		err := r.answers(ctx, p.cmd.Process.Pid)
		return err == nil, err
	})
	if err != nil {
		return errors.Join(err, p.kill())
	}
	r.process = p
	return nil
}

// answers tells whether the server is up, and that it is ours: where the port
// was taken, someone else's server would answer as well.
func (r *Redis) answers(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // whoever took the port may never answer
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", r.Addr()) // refusals would make the client's pool wary
	if err != nil {
		return err
	}
	_ = conn.Close()
	info, err := r.client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("process %d does not answer at %s, but another one does", pid, r.Addr())
	}
	return r.client.Ping(ctx).Err() // fails as long as data is being loaded
}

// whyEnded shows the end of what a server logged since offset.
func whyEnded(log *os.File, offset int64) error {
	const shown = 2000
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("redis-server ended; its log: %w", err)
	}
	offset = max(offset, end-shown)
	text := make([]byte, end-offset)
	n, _ := log.ReadAt(text, offset)
	said := strings.TrimSpace(string(text[:n]))
	if strings.Contains(said, "bind: ") { // what follows is the system's wording
		return fmt.Errorf("%w: %s", errPortTaken, said)
	}
	return fmt.Errorf("redis-server ended: %s", said)
}
