package httpjob

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

const (
	allowedDelay    = `a duration such as "1.5s" or "2h", not negative`
	allowedCost     = "a whole number from 1 to %d"
	allowedTime     = `a time in RFC 3339, such as "2026-12-01T06:00:00Z"`
	allowedPriority = "a whole number from 0 to %d"
	allowedAttempts = "a whole number from 1, or no such field for the worker's default"
)

// A field is one that a line may have, by its exact name.
type field struct {
	name string
	set  func(*call, json.RawMessage) error
}

// fieldsKnown stand in the order in which they are read, so that a line with
// several faults is always refused for the same one.
var fieldsKnown = []field{
	{"id", func(c *call, v json.RawMessage) error { return stated("id", v, &c.id) }},
	{"key", func(c *call, v json.RawMessage) error { return stated("key", v, &c.Key) }},
	{"url", func(c *call, v json.RawMessage) error { return stated("url", v, &c.request.URL) }},
	{"method", func(c *call, v json.RawMessage) error { return stated("method", v, &c.request.Method) }},
	{"headers", setHeaders},
	{"success", setSuccess},
	{"redirects", setRedirects},
	{"cost", setCost},
	{"max_attempts", setMaxAttempts},
	{"priority", setPriority},
	{"delay", setDelay},
	{"not_before", setNotBefore},
	{"ttl", func(c *call, v json.RawMessage) error { return span("ttl", v, &c.TTL) }},
	{"deadline", func(c *call, v json.RawMessage) error { return instant("deadline", v, &c.Deadline) }},
	{"dedupe", setDedupe},
	{"body", setBody},
	{"body_base64", setBase64},
	{"payload", setPayload},
}

func setHeaders(c *call, v json.RawMessage) error {
	var raw map[string]json.RawMessage
	if json.Unmarshal(v, &raw) != nil {
		return wrongType("headers", v, "an object of strings")
	}
	headers := make(map[string]string, len(raw))
	for name, value := range raw {
		var s string
		if err := text(fmt.Sprintf("headers[%q]", clip(name)), value, &s); err != nil {
			return err
		}
		headers[name] = s
	}
	c.request.Headers = headers
	return nil
}

func setSuccess(c *call, v json.RawMessage) error {
	var s string
	if err := stated("success", v, &s); err != nil {
		return err
	}
	c.request.Success = strings.Split(s, ",")
	return nil
}

func setRedirects(c *call, v json.RawMessage) error {
	return whole("redirects", v, &c.request.Redirects, fmt.Sprintf("a whole number from 0 to %d", MaxRedirects))
}

func setCost(c *call, v json.RawMessage) error {
	allowed := fmt.Sprintf(allowedCost, int64(throttle.MaxCost))
	if err := whole("cost", v, &c.Cost, allowed); err != nil {
		return err
	}
	if c.Cost < 1 { // in a job 0 stands for 1, but nobody writes it to mean that
		return invalid("cost", c.Cost, allowed)
	}
	return nil
}

func setMaxAttempts(c *call, v json.RawMessage) error {
	if err := whole("max_attempts", v, &c.MaxAttempts, allowedAttempts); err != nil {
		return err
	}
	if c.MaxAttempts < 1 { // in a job 0 stands for the default, but nobody writes it to mean that
		return invalid("max_attempts", c.MaxAttempts, allowedAttempts)
	}
	return nil
}

func setPriority(c *call, v json.RawMessage) error {
	return whole("priority", v, &c.Priority, fmt.Sprintf(allowedPriority, throttle.MaxPriority))
}

func setDelay(c *call, v json.RawMessage) error {
	c.NotBefore = time.Time{} // that of the defaults
	return span("delay", v, &c.Delay)
}

func setNotBefore(c *call, v json.RawMessage) error {
	c.Delay = 0 // that of the defaults
	return instant("not_before", v, &c.NotBefore)
}

func setBody(c *call, v json.RawMessage) error {
	var s string
	err := text("body", v, &s)
	c.request.Body = []byte(s)
	return err
}

func setBase64(c *call, v json.RawMessage) error {
	var s string
	if err := text("body_base64", v, &s); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return invalid("body_base64", described(fmt.Sprintf("of %d bytes", len(s))), "standard base64 with padding")
	}
	c.request.Body = b
	return nil
}

// setPayload takes the JSON as it stands, so that what was signed or stored
// elsewhere stays equal to it byte for byte.
func setPayload(c *call, v json.RawMessage) error {
	c.request.Body = v
	return nil
}

// stated reads a text that, once written, means something: an empty one is more
// likely a mistake at the sender than a wish for the default.
func stated(field string, v json.RawMessage, into *string) error {
	if err := text(field, v, into); err != nil {
		return err
	}
	if *into == "" {
		return invalid(field, "", "a text that is not empty, or no such field")
	}
	return nil
}

// text reads a JSON string that names what it means: an escaped half of a
// surrogate pair would come out as U+FFFD, and so two different keys as one.
func text(field string, v json.RawMessage, into *string) error {
	if v[0] != '"' || json.Unmarshal(v, into) != nil {
		return wrongType(field, v, "a string")
	}
	if bytes.Contains(v, []byte(`\u`)) && loneSurrogate(v) {
		return invalid(field, described("with half of a surrogate pair"), "valid Unicode text; binary bodies go into body_base64")
	}
	return nil
}

func whole[T int | int64](field string, v json.RawMessage, into *T, allowed string) error {
	if json.Unmarshal(v, into) != nil {
		return invalid(field, described(clip(string(v))), allowed)
	}
	return nil
}

// span reads a duration.
func span(field string, v json.RawMessage, into *time.Duration) error {
	var s string
	if err := text(field, v, &s); err != nil {
		return err
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return invalid(field, clip(s), allowedDelay)
	}
	*into = d
	return nil
}

// instant reads a time.
func instant(field string, v json.RawMessage, into *time.Time) error {
	var s string
	if err := text(field, v, &s); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return invalid(field, clip(s), allowedTime)
	}
	*into = t
	return nil
}

func wrongType(field string, v json.RawMessage, allowed string) error {
	kind := "that is a number"
	switch v[0] {
	case '{':
		kind = "that is an object"
	case '[':
		kind = "that is an array"
	case '"':
		kind = "that is a string"
	case 't', 'f':
		kind = "that is a boolean"
	case 'n':
		kind = "that is null"
	}
	return invalid(field, described(kind), allowed)
}
