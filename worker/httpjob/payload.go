package httpjob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// meta is the first line of a payload. The body follows it as it is, so that
// binary bodies need no encoding and large ones no escaping.
type meta struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
}

func (r Request) payload() []byte {
	// Strings and a map of strings: encoding cannot fail, and escapes every
	// newline, so the first one ends the line.
	line, _ := json.Marshal(meta{Method: r.method(), URL: r.URL, Headers: r.Headers})
	out := make([]byte, 0, len(line)+1+len(r.Body))
	out = append(out, line...)
	out = append(out, '\n')
	return append(out, r.Body...)
}

// Parse is the inverse of [Request.Job]: it reads the payload of a job of type
// [Type] and validates it. The body is a part of payload, not a copy. A field
// that this version does not know is refused: it would change the call.
func Parse(payload []byte) (Request, error) {
	line, body, found := bytes.Cut(payload, []byte{'\n'})
	if !found {
		return Request{}, errors.New("http job: the payload has no first line with the call")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	var m meta
	if err := d.Decode(&m); err != nil {
		return Request{}, fmt.Errorf("http job: first line of the payload: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, errors.New("http job: first line of the payload: more than one JSON value")
	}
	r := Request{Method: m.Method, URL: m.URL, Headers: m.Headers, Body: body}
	if err := r.Validate(); err != nil {
		return Request{}, fmt.Errorf("http job: %w", err)
	}
	return r, nil
}
