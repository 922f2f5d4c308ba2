package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
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
	d.cmd = exec.Command(filepath.Join(dir, "throttled"), append([]string{"serve", "--listen", "", "--log-level", "error"}, d.args...)...)
	d.cmd.Stderr = os.Stderr
	return d.cmd.Start()
}

func (d *daemon) kill() {
	_ = d.cmd.Process.Kill()
	_ = d.cmd.Wait()
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(os.Interrupt)
	_ = d.cmd.Wait()
}

func twoProcesses(run body) func(context.Context, *sheet) error {
	return func(ctx context.Context, s *sheet) error {
		r, err := throttletest.LaunchRedis(ctx, "")
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		var daemons []*daemon
		defer func() {
			for _, d := range daemons {
				d.stop()
			}
		}()
		return run(ctx, s, &env{client: r.Client(), url: r.URL(), start: func(_ *system, url string) error {
			for range 2 {
				d, err := startDaemon("--redis", url)
				if err != nil {
					return err
				}
				daemons = append(daemons, d)
			}
			return nil
		}})
	}
}

// Leases short enough to see them end.
const killedConfig = `
worker:
  lease: 2s
`

// killed kills a worker and a scheduler under way, three times each.
func killed(ctx context.Context, s *sheet) error {
	rd, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = rd.Close() }()
	r, err := newReceiver(func(arrival) int {
		time.Sleep(5 * time.Millisecond)
		return 204
	})
	if err != nil {
		return err
	}
	defer r.close()
	config := filepath.Join(rd.Dir(), "throttled.yaml")
	if err := os.WriteFile(config, []byte(killedConfig), 0o600); err != nil {
		return err
	}
	limits := make(map[string]throttle.Limit)
	var policies []throttle.Policy
	for i := range 5 {
		key := fmt.Sprintf("key %d", i)
		limits[key] = limit("40/s", 1)
		policies = append(policies, throttle.Policy{Key: key, Limit: limits[key]})
	}
	sys, err := newSystem(ctx, rd.Client(), policies...)
	if err != nil {
		return err
	}
	var workers, schedulers []*daemon
	defer func() {
		for _, d := range append(workers, schedulers...) {
			d.stop()
		}
	}()
	for range 2 {
		w, err := startDaemon("--redis", rd.URL(), "--config", config, "--worker-only")
		if err != nil {
			return err
		}
		workers = append(workers, w)
		sc, err := startDaemon("--redis", rd.URL(), "--config", config, "--scheduler-only")
		if err != nil {
			return err
		}
		schedulers = append(schedulers, sc)
	}
	expected := make(map[string][]string)
	total := 0
	for key := range limits {
		jobs, ids := calls(r, key, 1200)
		expected[key] = ids
		total += len(jobs)
		if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
	}
	var kills []time.Time
	for n := range 3 {
		if err := until(ctx, 30*time.Second, func() bool { return r.distinct() > total*(n+1)/5 }); err != nil {
			return err
		}
		kills = append(kills, time.Now())
		workers[n%2].kill()
		schedulers[n%2].kill()
		if err := workers[n%2].start(); err != nil {
			return err
		}
		if err := schedulers[n%2].start(); err != nil {
			return err
		}
	}
	if err := until(ctx, 90*time.Second, func() bool { return r.distinct() == total }); err != nil {
		return fmt.Errorf("%d of %d jobs arrived: %w", r.distinct(), total, err)
	}
	reports, err := throttletest.Measure(limits, r.events(), expected)
	if err != nil {
		return err
	}
	lost, excess := 0, 0.0
	for _, k := range reports {
		lost += len(k.Lost)
		excess = max(excess, k.Excess)
	}
	twice, unexplained := r.twice(kills)
	s.atMost("lost", float64(lost), 0)
	s.add("duplicated", float64(twice), "", true)
	s.atMost("duplicated, not in flight at a kill", float64(unexplained), 0)
	s.atMost("excess, jobs", excess, 1)
	return nil
}

// twice counts ids that arrived more than once, and those among them whose first
// arrival was not shortly before a kill, when the call was open or its end not yet
// written.
func (r *receiver) twice(kills []time.Time) (twice, unexplained int) {
	first := make(map[string]time.Time)
	for _, e := range r.events() {
		at, again := first[e.ID]
		if !again {
			first[e.ID] = e.At
			continue
		}
		twice++
		explained := false
		for _, k := range kills {
			explained = explained || (k.Sub(at) < 100*time.Millisecond && k.Sub(at) > -20*time.Millisecond)
		}
		if !explained {
			unexplained++
		}
	}
	return twice, unexplained
}
