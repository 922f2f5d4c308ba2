package httpjob

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

// Type is the job type of an HTTP call.
const Type = "http"

// The headers of a job that are the call itself and are not sent as headers.
const (
	methodHeader = ":method"
	urlHeader    = ":url"
)

// A Request is one HTTP call.
type Request struct {
	Method  string            // empty means POST, with a body or without
	URL     string            // absolute, http or https; a user and password in it become basic authentication
	Headers map[string]string // one value for each name; names that differ only in case are refused
	Body    []byte            // sent byte for byte
	Timeout time.Duration     // of one attempt; 0 means the worker's default
}

// Job makes the call a job under key. Its payload is the body, not a copy. What
// the job leaves open (id, cost, …) has its zero value and may be filled in. The
// error is a [*throttle.InvalidError], and never contains the URL. The size of
// the body is left to the queue, which has the bound.
func (r Request) Job(key string) (throttle.Job, error) {
	if err := throttle.ValidateKey(key); err != nil {
		return throttle.Job{}, err
	}
	if err := r.Validate(); err != nil {
		return throttle.Job{}, err
	}
	headers := make(map[string]string, len(r.Headers)+2)
	maps.Copy(headers, r.Headers)
	headers[methodHeader] = r.method()
	headers[urlHeader] = r.URL
	return throttle.Job{Key: key, Type: Type, Headers: headers, Payload: r.Body, Timeout: r.Timeout}, nil
}

// Parse is the inverse of [Request.Job]: it reads the headers and the payload of
// a job or task of type [Type], and validates them. The body is the payload, not
// a copy. Of the names that begin with a colon, one that this version does not
// know is refused: it would change the call.
func Parse(headers map[string]string, payload []byte) (Request, error) {
	var r Request
	if err := r.setCall(headers); err != nil {
		return Request{}, fmt.Errorf("http job: %w", err)
	}
	r.Body = payload
	if err := r.Validate(); err != nil {
		return Request{}, fmt.Errorf("http job: %w", err)
	}
	return r, nil
}

func (r *Request) setCall(headers map[string]string) error {
	var unknown []string
	for name, value := range headers {
		switch {
		case name == methodHeader:
			r.Method = value
		case name == urlHeader:
			r.URL = value
		case strings.HasPrefix(name, ":"):
			unknown = append(unknown, name)
		default:
			if r.Headers == nil {
				r.Headers = make(map[string]string, len(headers))
			}
			r.Headers[name] = value
		}
	}
	if len(unknown) > 0 {
		return invalid("headers", clip(slices.Min(unknown)), "no name with a colon in front but "+methodHeader+" and "+urlHeader+
			"; a later version may have made the job")
	}
	if _, ok := headers[urlHeader]; !ok {
		return invalid("headers", described("without "+urlHeader), "those of a job made by Request.Job")
	}
	return nil
}

func (r Request) method() string {
	if r.Method == "" {
		return http.MethodPost
	}
	return r.Method
}
