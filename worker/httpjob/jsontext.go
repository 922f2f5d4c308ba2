package httpjob

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/weirq/weir/throttle"
)

// loneSurrogate tells whether a valid JSON string has an escape for one half of
// a surrogate pair without the other.
func loneSurrogate(v []byte) bool {
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' {
			continue
		}
		if v[i+1] != 'u' {
			i++
			continue
		}
		r := escaped(v[i:])
		if !utf16.IsSurrogate(r) {
			i += 5
			continue
		}
		if utf16.DecodeRune(r, escaped(v[i+6:])) == '\uFFFD' {
			return true
		}
		i += 11
	}
	return false
}

// escaped is the code unit of the \uXXXX that b starts with, or 0.
func escaped(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// columnOf finds where the value of a field of a valid JSON object begins, in
// bytes from 1: the last one, where a name is there twice, as that one counts.
func columnOf(line []byte, field string) int {
	d := json.NewDecoder(bytes.NewReader(line))
	column := 0
	_, _ = d.Token() // {
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return column
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return column
		}
		if name == field {
			column = int(d.InputOffset()) - len(value) + 1
		}
	}
	return column
}

// columnOfInvalid finds the place of the field that err refuses; 0 where it was
// not in the line but in the defaults, or in neither.
func columnOfInvalid(line []byte, fields map[string]json.RawMessage, err error) int {
	var refused *throttle.InvalidError
	if !errors.As(err, &refused) {
		return 0
	}
	name := refused.Field
	if end := strings.IndexAny(name, "[."); end > 0 { // what is in an object stands at the object
		name = name[:end]
	}
	if _, ok := fields[name]; !ok {
		return 0
	}
	return columnOf(line, name)
}
