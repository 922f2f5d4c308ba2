package webhook

import (
	"fmt"
	"strings"
)

// MaxEventType is the longest type of an event, in bytes.
const MaxEventType = 128

const (
	allowedType   = `letters, digits, - and _ with full stops between, such as "invoice.paid"; at most 128 bytes`
	allowedFilter = `a type such as "invoice.paid", or one with .* behind, such as "invoice.*"; for all events, no filters`
)

func isEventType(text string) bool {
	if len(text) > MaxEventType {
		return false
	}
	for part := range strings.SplitSeq(text, ".") {
		if part == "" || strings.IndexFunc(part, notInName) >= 0 {
			return false
		}
	}
	return true
}

func validateFilters(filters []string) error {
	if n := len(filters); n > MaxFilters {
		return invalid("events", n, "at most %d; for all events, none", MaxFilters)
	}
	for i, f := range filters {
		if !isEventType(strings.TrimSuffix(f, ".*")) {
			return invalid(fmt.Sprintf("events[%d]", i), clip(f), allowedFilter)
		}
	}
	return nil
}

// wants tells whether the filters let a type through.
func (e Endpoint) wants(eventType string) bool {
	for _, f := range e.Events {
		prefix, isPrefix := strings.CutSuffix(f, "*")
		if f == eventType || isPrefix && strings.HasPrefix(eventType, prefix) {
			return true
		}
	}
	return len(e.Events) == 0
}
