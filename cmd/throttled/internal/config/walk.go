package config

import (
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
		case below == allowNetworksPath:
			r.allowNetworks(value)
		case single:
			if r.field(below, f, value) {
				r.note(below, nodePlace(value))
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

// note remembers where the value of a path stands.
func (r *reader) note(path string, at Place) {
	r.config.origins[path] = where(r.file, at)
	r.places[path] = at
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

func (r *reader) pools(node ast.Node) {
	pools := make(map[string]int)
	before := len(r.problems)
	r.mapping(poolsPath, node, nil, func(below string, value ast.Node) {
		name := strings.TrimPrefix(below, poolsPath+".")
		if !isPoolName(name) {
			r.wrong(nodePlace(value), "%s name %s is not allowed: want 1 to %d printable ASCII bytes without spaces", poolsPath, quote(name), throttle.MaxTokenBytes)
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
