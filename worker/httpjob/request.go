package httpjob

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

// Type is the job type of an HTTP call.
const Type = "http"

// The headers of a job that are the call itself and are not sent as headers.
const (
	methodHeader    = ":method"
	urlHeader       = ":url"
	successHeader   = ":success"
	redirectsHeader = ":redirects"
)

// A Request is one HTTP call.
type Request struct {
	Method  string            // empty means POST, with a body or without
	URL     string            // absolute, http or https; a user and password in it become basic authentication
	Headers map[string]string // one value for each name; names that differ only in case are refused
	Body    []byte            // sent byte for byte
	Timeout time.Duration     // of one attempt; 0 means the worker's default
	// Success are the statuses that mean that the call is done: "2xx", "200", "200-299", also several with
	// commas between them. None means "2xx".
	Success   []string
	Redirects int // how many are followed, up to MaxRedirects; see [Handler]
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
	headers := r.own()
	maps.Copy(headers, r.Headers)
	return throttle.Job{Key: key, Type: Type, Headers: headers, Payload: r.Body, Timeout: r.Timeout}, nil
}

// own are the headers of a job that stand for all that is not sent as a header. What has
// its default is left out, but for the method.
func (r Request) own() map[string]string {
	own := make(map[string]string, len(r.Headers)+4)
	own[methodHeader] = r.method()
	own[urlHeader] = r.URL
	if len(r.Success) > 0 {
		own[successHeader] = strings.Join(r.Success, ",")
	}
	if r.Redirects != 0 {
		own[redirectsHeader] = strconv.Itoa(r.Redirects)
	}
	return own
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
		case name == successHeader:
			r.Success = strings.Split(value, ",")
		case name == redirectsHeader:
			n, err := strconv.Atoi(value)
			if err != nil {
				n = -1 // refused, as any that is not allowed
			}
			r.Redirects = n
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
		return invalid("headers", clip(slices.Min(unknown)), "no name with a colon in front but "+
			strings.Join([]string{methodHeader, urlHeader, successHeader, redirectsHeader}, ", ")+"; a later version may have made the job")
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
