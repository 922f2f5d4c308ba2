package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/weirq/weir/throttle"
)

// section reads the fields, lists and sections below a path.
func (r *reader) section(path string, node ast.Node) {
	fields := r.config.fields()
	r.mapping(path, node, r.config.children(path), func(below string, value ast.Node) {
		f, single := fields[below]
		switch {
		case single:
			if r.field(below, f, value) {
				r.config.origins[below] = where(r.file, nodePlace(value))
				r.places[below] = nodePlace(value)
			}
		case below == policiesPath:
			r.policies(value)
		case below == poolsPath:
			r.pools(value)
		default:
			r.section(below, value)
		}
	})
}

func (r *reader) field(path string, f field, node ast.Node) (ok bool) {
	text, ok := scalar(node, f.kind)
	if ok && f.set(text) {
		return true
	}
	given := path + " " + shown(node)
	if f.secret {
		given = path
	}
	r.wrong(nodePlace(node), "%s is not allowed: want %s", given, f.want)
	return false
}

// mapping reads the entries of a mapping. Their names must be among known, or may
// be any text if that is nil. An entry without a value counts as left out.
func (r *reader) mapping(path string, node ast.Node, known []string, read func(below string, value ast.Node)) {
	entries, ok := pairs(node)
	if !ok {
		want := "a mapping"
		if known != nil {
			want += " of " + strings.Join(known, ", ")
		}
		r.wrong(nodePlace(node), "%s is not allowed: want %s", strings.TrimSpace(path+" "+shown(node)), want)
		return
	}
	first := make(map[string]int) // line of each name
	for _, entry := range entries {
		at := placeOf(entry.Key.GetToken())
		name, isText := name(entry)
		below := strings.TrimPrefix(path+"."+name, ".")
		line, twice := first[name]
		switch {
		case known != nil && (!isText || !slices.Contains(known, name)):
			r.wrong(at, "%s is not a known field: want %s", clip(below), strings.Join(known, ", "))
		case !isText:
			r.wrong(at, "%s is not allowed: want a name that is text, in quotes if YAML takes it for something else", clip(below))
		case twice:
			r.wrong(at, "%s is given twice: want it once, as on line %d", below, line)
		default:
			first[name] = at.Line
			if entry.Value.Type() != ast.NullType {
				read(below, entry.Value)
			}
		}
	}
}

func (r *reader) policies(node ast.Node) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		r.wrong(nodePlace(node), "%s %s is not allowed: want a list of policies", policiesPath, shown(node))
		return
	}
	r.config.Policies = make([]throttle.Policy, 0, len(list.Values))
	lines := make(map[string]int) // of each key
	for i, value := range list.Values {
		p, at := r.policy(fmt.Sprintf("%s[%d]", policiesPath, i), value)
		if line, twice := lines[p.Key]; twice {
			r.wrong(at, "%s[%d].key %s is not allowed: want one policy a key, and line %d has one", policiesPath, i, quote(p.Key), line)
		} else if p.Key != "" {
			lines[p.Key] = at.Line
		}
		r.config.Policies = append(r.config.Policies, p)
	}
}

// policy reads one policy and tells where its key stands. The key is empty if it is
// not allowed.
func (r *reader) policy(path string, node ast.Node) (p throttle.Policy, key Place) {
	p = throttle.Policy{
		Limit:       throttle.Limit{Burst: throttle.DefaultPolicy.Limit.Burst},
		MaxInFlight: throttle.DefaultPolicy.MaxInFlight,
	}
	fields := policyFields(&p)
	missing := map[string]bool{"key": true, "rate": true}
	r.mapping(path, node, []string{"key", "rate", "burst", "max_in_flight"}, func(below string, value ast.Node) {
		name := strings.TrimPrefix(below, path+".")
		delete(missing, name)
		allowed := r.field(below, fields[name], value)
		if name == "key" {
			key = nodePlace(value)
			if !allowed {
				p.Key = ""
			}
		}
	})
	if _, ok := pairs(node); !ok {
		return p, key // reported as a whole
	}
	for _, name := range []string{"key", "rate"} {
		if missing[name] {
			r.wrong(nodePlace(node), "%s.%s is missing: want %s", path, name, fields[name].want)
		}
	}
	return p, key
}

func (r *reader) pools(node ast.Node) {
	pools := make(map[string]int)
	before := len(r.problems)
	r.mapping(poolsPath, node, nil, func(below string, value ast.Node) {
		name := strings.TrimPrefix(below, poolsPath+".")
		if !isPoolName(name) {
			r.wrong(nodePlace(value), "%s name %s is not allowed: want 1 to %d printable ASCII bytes without spaces", poolsPath, quote(name), throttle.MaxTypeBytes)
			return
		}
		var priority int
		r.field(below, pool(&priority), value)
		pools[name] = priority
	})
	if len(pools) == 0 && len(r.problems) == before {
		r.wrong(nodePlace(node), "%s is empty: want at least one pool with its priority", poolsPath)
	}
	r.config.Worker.Pools = pools
}
