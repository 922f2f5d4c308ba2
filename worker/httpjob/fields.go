package httpjob

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
)

const (
	allowedDelay = `a duration such as "1.5s" or "2h", not negative`
	allowedCost  = "a whole number from 1 to %d"
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
	{"key", func(c *call, v json.RawMessage) error { return stated("key", v, &c.key) }},
	{"url", func(c *call, v json.RawMessage) error { return stated("url", v, &c.request.URL) }},
	{"method", func(c *call, v json.RawMessage) error { return stated("method", v, &c.request.Method) }},
	{"headers", setHeaders},
	{"cost", setCost},
	{"delay", setDelay},
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

func setCost(c *call, v json.RawMessage) error {
	allowed := fmt.Sprintf(allowedCost, int64(throttle.MaxCost))
	if json.Unmarshal(v, &c.cost) != nil {
		return invalid("cost", described(clip(string(v))), allowed)
	}
	if c.cost < 1 { // in a job 0 stands for 1, but nobody writes it to mean that
		return invalid("cost", c.cost, allowed)
	}
	return nil
}

func setDelay(c *call, v json.RawMessage) error {
	var s string
	if err := text("delay", v, &s); err != nil {
		return err
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return invalid("delay", clip(s), allowedDelay)
	}
	c.delay = d
	return nil
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
