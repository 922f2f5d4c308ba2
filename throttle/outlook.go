package throttle

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

// readOutlook reads what scripts tell of a key and its parents, see outlook.lua.
func readOutlook(now int64, text string) (outlook, error) {
	o := outlook{now: now}
	lines := strings.Split(text, "\n")
	for len(lines) >= 2 {
		var s stage
		var err error
		if s.policy, err = knownPolicies.read(lines[1]); err != nil {
			return outlook{}, err
		}
		n, err := floats(lines[0], 10)
		if err != nil {
			return outlook{}, err
		}
		s.level, s.out, s.paused, s.cool, s.ramped = n[0], n[1], n[2] == 1, int64(n[3]), int64(n[4])
		s.share, s.flight, s.run = n[5], int64(n[6]), microseconds(int64(n[7]))
		// A key that adapts has a limit of its own, at or below that of its policy.
		s.policy.Limit.Period, s.policy.Limit.Burst = microseconds(int64(n[8])), int64(n[9])
		lines = lines[2:]
		for _, q := range s.policy.Quotas {
			if len(lines) == 0 {
				return outlook{}, fmt.Errorf("outlook %q: %w", text, errOutlook)
			}
			c, err := readCounted(q, lines[0])
			if err != nil {
				return outlook{}, err
			}
			s.quotas = append(s.quotas, c)
			lines = lines[1:]
		}
		o.stages = append(o.stages, s)
	}
	if len(o.stages) == 0 || len(lines) > 0 {
		return outlook{}, fmt.Errorf("outlook %q: %w", text, errOutlook)
	}
	return o, nil
}

var errOutlook = fmt.Errorf("it is damaged, or written by a newer version")

func readCounted(q Quota, line string) (counted, error) {
	if q.Window == Fixed {
		n, err := floats(line, 2)
		if err != nil {
			return counted{}, err
		}
		return counted{window: int64(n[0]), used: n[1]}, nil
	}
	n, err := floats(line, 0)
	if err != nil || len(n)%2 != 1 {
		return counted{}, fmt.Errorf("outlook %q: %w", line, errOutlook)
	}
	c := counted{used: n[0]}
	for i := 1; i < len(n); i += 2 {
		c.log = append(c.log, loggedCost{at: int64(n[i]), cost: n[i+1]})
	}
	return c, nil
}

// floats reads numbers between spaces, as many as want if that is not 0.
func floats(line string, want int) ([]float64, error) {
	parts := strings.Fields(line)
	list := make([]float64, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseFloat(p, 64)
		if err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
			err = errOutlook
		}
		if err != nil {
			return nil, fmt.Errorf("outlook %q: %w", line, err)
		}
		list[i] = n
	}
	if want != 0 && len(list) != want {
		return nil, fmt.Errorf("outlook %q: %w", line, errOutlook)
	}
	return list, nil
}

// knownPolicies are those that were read lately: the same few come with every reply.
var knownPolicies policyCache

type policyCache struct {
	mu    sync.Mutex
	known map[string]Policy
}

func (c *policyCache) read(text string) (Policy, error) {
	const most = 1000
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.known[text]; ok {
		return p, nil
	}
	p, err := policyFromText("", text)
	if err != nil {
		return Policy{}, err
	}
	if c.known == nil || len(c.known) >= most {
		c.known = make(map[string]Policy)
	}
	c.known[text] = p
	return p, nil
}
