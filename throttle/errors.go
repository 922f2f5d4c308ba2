package throttle

import (
	"errors"
	"fmt"
)

// ErrInvalid is matched by every [*InvalidError] through errors.Is.
var ErrInvalid = errors.New("invalid input")

// An InvalidError refuses a value before anything is written. Its text names
// the field, the value given and what is allowed.
type InvalidError struct {
	Field   string // as users write it: "key", "rate", "jobs[3].payload"
	Value   any    // what was given; the size, where the value itself is too long or secret
	Allowed string // what would be accepted
}

func (e *InvalidError) Error() string {
	if s, ok := e.Value.(string); ok {
		return fmt.Sprintf("%s %q is not allowed: want %s", e.Field, s, e.Allowed)
	}
	return fmt.Sprintf("%s %v is not allowed: want %s", e.Field, e.Value, e.Allowed)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(field string, value any, allowed string, args ...any) error {
	return &InvalidError{Field: field, Value: value, Allowed: fmt.Sprintf(allowed, args...)}
}

// within prefixes the field of an InvalidError with the place it stands in.
func within(place string, err error) error {
	var e *InvalidError
	if errors.As(err, &e) {
		return &InvalidError{Field: place + "." + e.Field, Value: e.Value, Allowed: e.Allowed}
	}
	return fmt.Errorf("%s: %w", place, err)
}
