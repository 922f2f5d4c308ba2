package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/weirq/weir/throttle/throttletest"
)

// binaries builds the commands once and returns their directory, which main removes.
var binaries = sync.OnceValues(func() (string, error) {
	built = true
	dir, err := os.MkdirTemp("", "pacerun-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir, "github.com/weirq/weir/cmd/...")
	build.Stderr = os.Stderr
	return dir, build.Run()
})

var built bool

// daemon is a throttled process.
type daemon struct {
	args []string
	cmd  *exec.Cmd
}

func startDaemon(args ...string) (*daemon, error) {
	d := &daemon{args: args}
	return d, d.start()
}

func (d *daemon) start() error {
	dir, err := binaries()
	if err != nil {
		return err
	}
	d.cmd = exec.Command(filepath.Join(dir, "throttled"), append([]string{"serve", "--listen", "", "--allow-network", "127.0.0.0/8", "--log-level", "error"}, d.args...)...)
	d.cmd.Stderr = os.Stderr
	return d.cmd.Start()
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *daemon) stop() {
	if d.cmd.Process == nil { // it did not start again
		return
	}
	_ = d.cmd.Process.Signal(os.Interrupt)
	_ = d.cmd.Wait()
}

// daemons are stopped together.
type daemons []*daemon

func (ds *daemons) add(n int, args ...string) error {
	for range n {
		d, err := startDaemon(args...)
		if err != nil {
			return err
		}
		*ds = append(*ds, d)
	}
	return nil
}

func (ds *daemons) stop() {
	for _, d := range *ds {
		d.stop()
	}
}

// onProcesses runs a scenario with n daemons, each of which schedules and works.
func onProcesses(n int, run body) func(context.Context, *sheet) error {
	return func(ctx context.Context, s *sheet) error {
		r, err := throttletest.LaunchRedis(ctx, "")
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		var running daemons
		defer running.stop()
		return run(ctx, s, &env{client: r.Client(), url: r.URL(), start: func(_ *system, url string) error {
			return running.add(n, "--redis", url)
		}})
	}
}
