package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/weirq/weir/throttle/throttletest"
)

// crew is workers and schedulers in processes of their own, to be killed.
type crew struct{ workers, schedulers daemons }

// lease of a job in a worker's hands: short enough to see it end.
const lease = 2 * time.Second

// startCrew returns what was started also when something was not.
func startCrew(rd *throttletest.Redis, workers, schedulers int) (*crew, error) {
	c := &crew{}
	config := filepath.Join(rd.Dir(), "throttled.yaml")
	if err := os.WriteFile(config, []byte("worker:\n  lease: "+lease.String()+"\n"), 0o600); err != nil {
		return c, err
	}
	if err := c.workers.add(workers, "--redis", rd.URL(), "--config", config, "--worker-only"); err != nil {
		return c, err
	}
	return c, c.schedulers.add(schedulers, "--redis", rd.URL(), "--config", config, "--scheduler-only")
}

func (c *crew) stop() {
	c.workers.stop()
	c.schedulers.stop()
}

// again counts the arrivals of ids that had arrived before, and those among them that
// no kill explains. One does if the arrival before lay at most open ahead of it, or a
// moment after it: the call was under way, or its end not yet written.
func again(arrivals []throttletest.Event, kills []time.Time, open time.Duration) (twice, unexplained int) {
	last := make(map[string]time.Time)
	for _, e := range arrivals {
		at, seen := last[e.ID]
		last[e.ID] = e.At
		if !seen {
			continue
		}
		twice++
		explained := false
		for _, k := range kills {
			explained = explained || (k.Sub(at) < open && k.Sub(at) > -20*time.Millisecond)
		}
		if !explained {
			unexplained++
		}
	}
	return twice, unexplained
}
