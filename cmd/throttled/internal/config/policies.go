package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weirq/weir/throttle"
)

// policies reads the list of policies. They are checked against each other once there
// is nothing else wrong with them.
func (r *reader) policies(node ast.Node) {
	problems := len(r.problems)
	r.config.Policies = []throttle.Policy{}
	lines := make(map[string]int) // of each key
	r.list(policiesPath, node, "policies", func(path string, value ast.Node) {
		p, at := r.policy(path, value)
		if line, twice := lines[p.Key]; twice {
			r.wrong(at, "%s.key %s is not allowed: want one policy a key, and line %d has one", path, quote(p.Key), line)
		} else if p.Key != "" {
			lines[p.Key] = at.Line
		}
		r.config.Policies = append(r.config.Policies, p)
	})
	if len(r.problems) == problems {
		r.refused(throttle.ValidatePolicies(r.config.Policies))
	}
}

// policy reads one policy and tells where its key stands. The key is empty if it is
// not allowed.
func (r *reader) policy(path string, node ast.Node) (p throttle.Policy, key Place) {
	p = throttle.Policy{
		Limit:       throttle.Limit{Burst: throttle.DefaultPolicy.Limit.Burst},
		MaxInFlight: throttle.DefaultPolicy.MaxInFlight,
	}
	problems := len(r.problems)
	r.entries(path, node, policyFields(&p), []string{"key", "rate"}, map[string]func(string, ast.Node){
		"quotas": func(below string, value ast.Node) { p.Quotas = r.quotas(below, value) },
		"hours":  func(below string, value ast.Node) { p.Hours = r.hours(below, value) },
		"ramp":   func(below string, value ast.Node) { p.Ramp = r.ramp(below, value) },
		"circuit": func(below string, value ast.Node) {
			p.Circuit = new(throttle.Circuit)
			r.entries(below, value, circuitFields(p.Circuit), nil, nil)
		},
	})
	key, known := r.places[path+".key"]
	if !known {
		p.Key = ""
	}
	if len(r.problems) == problems {
		r.refused(within(path, p.Validate()))
	}
	return p, key
}

func (r *reader) quotas(path string, node ast.Node) (quotas []throttle.Quota) {
	r.list(path, node, "quotas", func(below string, value ast.Node) {
		var q throttle.Quota
		r.entries(below, value, quotaFields(&q), []string{"limit", "per"}, nil)
		quotas = append(quotas, q)
	})
	return quotas
}

func (r *reader) hours(path string, node ast.Node) *throttle.Hours {
	var h throttle.Hours
	r.entries(path, node, hoursFields(&h), []string{"open"}, map[string]func(string, ast.Node){
		"open": func(below string, value ast.Node) {
			r.list(below, value, "openings", func(below string, value ast.Node) {
				var o throttle.Opening
				if r.field(below, opening(&o), value) {
					r.note(below, nodePlace(value))
				}
				h.Open = append(h.Open, o)
			})
		},
	})
	return &h
}

func (r *reader) ramp(path string, node ast.Node) *throttle.Ramp {
	var ramp throttle.Ramp
	r.entries(path, node, rampFields(&ramp), []string{"from", "over"}, nil)
	return &ramp
}

// entries reads a mapping of fields with one value and of others that read themselves.
// Those that are required must have a value.
func (r *reader) entries(path string, node ast.Node, fields map[string]field, required []string, others map[string]func(string, ast.Node)) {
	r.note(path, nodePlace(node))
	given := make(map[string]bool)
	r.mapping(path, node, fieldNames(fields, others), func(below string, value ast.Node) {
		name := strings.TrimPrefix(below, path+".")
		given[name] = true
		if read, found := others[name]; found {
			r.note(below, nodePlace(value))
			read(below, value)
		} else if r.field(below, fields[name], value) {
			r.note(below, nodePlace(value))
		}
	})
	if _, ok := pairs(node); !ok {
		return // reported as a whole
	}
	for _, name := range required {
		if !given[name] {
			r.wrong(nodePlace(node), "%s.%s is missing: want %s", path, name, wanted(fields, name))
		}
	}
}

// list reads the entries of a list, which are of a kind that errors name.
func (r *reader) list(path string, node ast.Node, kind string, read func(below string, value ast.Node)) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		r.wrong(nodePlace(node), "%s %s is not allowed: want a list of %s", path, shown(node), kind)
		return
	}
	for i, value := range list.Values {
		read(fmt.Sprintf("%s[%d]", path, i), value)
	}
}

// refused reports what package throttle refuses, at the place of the field.
func (r *reader) refused(err error) {
	var e *throttle.InvalidError
	if !errors.As(err, &e) {
		return
	}
	for path := e.Field; path != ""; path = above(path) {
		if at, known := r.places[path]; known {
			r.wrong(at, "%s", refusal(e))
			return
		}
	}
	r.wrong(Place{1, 1}, "%s", refusal(e))
}

// within makes the field of a refusal a path from the top.
func within(path string, err error) error {
	var e *throttle.InvalidError
	if !errors.As(err, &e) {
		return err
	}
	return &throttle.InvalidError{Field: path + "." + e.Field, Value: e.Value, Allowed: e.Allowed}
}

// above is a path without its last step, which is a name or an index.
func above(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// refusal is the text of a refusal in the manner of the other problems.
func refusal(e *throttle.InvalidError) string {
	value := fmt.Sprint(e.Value)
	if s, ok := e.Value.(string); ok {
		value = quote(s)
	}
	return fmt.Sprintf("%s %s is not allowed: want %s", e.Field, value, e.Allowed)
}

// ParsePercent reads a share of the rate such as "10%" or "2.5%", which is more than
// nothing and less than all, as a fraction.
func ParsePercent(text string) (fraction float64, ok bool) {
	number, found := strings.CutSuffix(text, "%")
	if !found || strings.Trim(number, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0 && n < 100) {
		return 0, false
	}
	return n / 100, true
}

// FormatPercent is the inverse of [ParsePercent].
func FormatPercent(fraction float64) string {
	// Twelve digits: 0.07 times 100 is a little more than 7.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(fraction*100, 'g', 12, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64) + "%"
}
