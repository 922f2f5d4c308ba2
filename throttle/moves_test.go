package throttle_test

import (
	"github.com/weirq/weir/throttle/internal/script"
)

// What tests of single scripts call them with, in µs.
const (
	lead  = 100_000
	lease = 10_000_000
)

func releasing(token string) script.Releasing {
	return script.Releasing{Lead: lead, Lease: lease, Most: 256, Round: "round" + token, Scheduler: "s", Token: token}
}

func released(c *script.Call) []script.Released {
	return c.Released().Jobs
}

func holds(jobs []script.Released) []script.Hold {
	out := make([]script.Hold, len(jobs))
	for i, j := range jobs {
		out[i] = script.Hold{Key: j.Key, ID: j.ID, Release: j.Release}
	}
	return out
}

// departed are the holds of jobs that were given slots.
func departed(jobs []script.Hold, slots []script.Slot) []script.Hold {
	var out []script.Hold
	for i, s := range slots {
		if s.Status == script.Go {
			h := jobs[i]
			h.Run = s.Run
			out = append(out, h)
		}
	}
	return out
}

func ends(what string, jobs []script.Hold) []script.End {
	out := make([]script.End, len(jobs))
	for i, h := range jobs {
		out[i] = script.End{Hold: h, What: what, Reason: "because"}
	}
	return out
}
