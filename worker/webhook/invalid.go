package webhook

import (
	"fmt"

	"github.com/weirq/weir/throttle"
)

// described stands for a value that is secret or long: it reads as a clause and is not
// put in quotes.
type described string

func describe(format string, args ...any) described { return described(fmt.Sprintf(format, args...)) }

func invalid(field string, value any, allowed string, args ...any) error {
	if len(args) > 0 {
		allowed = fmt.Sprintf(allowed, args...)
	}
	return &throttle.InvalidError{Field: field, Value: value, Allowed: allowed}
}

// clip keeps a message readable when a value is absurdly long.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
