package httpjob

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirq/weir/throttle"
)

// A dedupeField is one that the object in a line's dedupe may have.
type dedupeField struct {
	name string
	set  func(*throttle.Dedupe, string, json.RawMessage) error
}

// dedupeFields stand in the order in which they are read, see fieldsKnown.
var dedupeFields = []dedupeField{
	{"name", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return stated(at, v, &d.Name) }},
	{"content", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return truth(at, v, &d.Content) }},
	{"while_waiting", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return truth(at, v, &d.WhileWaiting) }},
	{"window", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return span(at, v, &d.Window) }},
	{"replace", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return truth(at, v, &d.Replace) }},
	{"debounce", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return span(at, v, &d.Debounce) }},
	{"max_debounce", func(d *throttle.Dedupe, at string, v json.RawMessage) error { return span(at, v, &d.MaxDebounce) }},
}

// setDedupe reads the object as a whole. Unlike in the line itself, where a sender's own
// fields may stand, a name that is not known can only be a mistake here.
func setDedupe(c *call, v json.RawMessage) error {
	var fields map[string]json.RawMessage
	names := make([]string, len(dedupeFields))
	for i, f := range dedupeFields {
		names[i] = f.name
	}
	allowed := "an object of " + strings.Join(names, ", ")
	if json.Unmarshal(v, &fields) != nil {
		return wrongType("dedupe", v, allowed)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(names, name) {
			return invalid("dedupe", described(fmt.Sprintf("with %q", clip(name))), allowed)
		}
	}
	var d throttle.Dedupe
	for _, f := range dedupeFields {
		if !given(fields, f.name) {
			continue
		}
		if err := f.set(&d, "dedupe."+f.name, fields[f.name]); err != nil {
			return err
		}
	}
	c.Dedupe = &d
	return nil
}

func truth(field string, v json.RawMessage, into *bool) error {
	if json.Unmarshal(v, into) != nil {
		return wrongType(field, v, "true or false")
	}
	return nil
}
