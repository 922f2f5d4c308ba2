package httpjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/weirq/weir/throttle"
)

// A call is what one line says. What is not of the request itself stands in the
// defaults, in place of theirs.
type call struct {
	Defaults
	id      string
	request Request
}

// A lineFault is an error at a place in a line.
type lineFault struct {
	column int // in bytes from 1; 0 means the line as a whole
	err    error
}

// decode makes a job of one line that is not blank. It calls unknown for each
// field that it has no use for.
func decode(line []byte, d Defaults, unknown func(name string)) (throttle.Job, *lineFault) {
	fields, fault := split(line)
	if fault != nil {
		return throttle.Job{}, fault
	}
	body, err := oneBody(fields)
	if err != nil {
		return throttle.Job{}, &lineFault{err: err}
	}
	if given(fields, "delay") && given(fields, "not_before") {
		err := invalid("not_before", described("beside delay"), "only one of the two")
		return throttle.Job{}, &lineFault{column: columnOf(line, "not_before"), err: err}
	}
	c := call{Defaults: d, request: d.request()}
	c.request.Headers = nil // joined at the end
	for _, f := range fieldsKnown {
		if !given(fields, f.name) {
			continue
		}
		if err := f.set(&c, fields[f.name]); err != nil {
			return throttle.Job{}, &lineFault{column: columnOf(line, f.name), err: err}
		}
	}
	if err := d.validateBody(body, c.request.Body); err != nil {
		return throttle.Job{}, &lineFault{column: columnOf(line, body), err: err}
	}
	for name := range fields {
		if !slices.ContainsFunc(fieldsKnown, func(f field) bool { return f.name == name }) {
			unknown(name)
		}
	}
	c.request.Headers = c.headers(c.request.Headers)
	if given(fields, "payload") && !has(c.request.Headers, "Content-Type") {
		c.request.Headers["Content-Type"] = "application/json"
	}
	j, err := c.request.Job(c.Key)
	if err == nil {
		j.ID = c.id
		j, err = c.finish(j)
	}
	if err != nil {
		return throttle.Job{}, &lineFault{column: columnOfInvalid(line, fields, err), err: err}
	}
	return j, nil
}

// split reads the line as one JSON object.
func split(line []byte) (map[string]json.RawMessage, *lineFault) {
	if !utf8.Valid(line) {
		return nil, &lineFault{column: validPrefix(line) + 1, err: errors.New("not valid UTF-8: binary bodies go into body_base64")}
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(line, &fields)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, &lineFault{column: int(syntax.Offset), err: fmt.Errorf("not valid JSON: %w", syntax)}
	case err != nil || fields == nil: // some other value, null among them
		return nil, &lineFault{err: errors.New("not a JSON object: each line holds one job, such as {\"key\":\"billing\",\"url\":\"https://example.com/hook\"}")}
	}
	return fields, nil
}

func validPrefix(b []byte) int {
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		n += size
	}
	return n
}

// oneBody finds the field that the body is given in, "" if there is none.
func oneBody(fields map[string]json.RawMessage) (first string, err error) {
	for _, name := range []string{"body", "body_base64", "payload"} {
		if !given(fields, name) {
			continue
		}
		if first != "" {
			return "", invalid(name, described("beside "+first), "only one of body, body_base64 and payload")
		}
		first = name
	}
	return first, nil
}

// given tells whether a line says anything in a field. Null says nothing, but
// in payload it is the JSON to send.
func given(fields map[string]json.RawMessage, name string) bool {
	v, ok := fields[name]
	return ok && (string(v) != "null" || name == "payload")
}
