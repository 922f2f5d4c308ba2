package httpjob

import (
	"net/http"
	"time"

	"github.com/weirq/weir/throttle"
)

// Type is the job type of an HTTP call.
const Type = "http"

// A Request is one HTTP call.
type Request struct {
	Method  string            // empty means POST, with a body or without
	URL     string            // absolute, http or https; a user and password in it become basic authentication
	Headers map[string]string // one value for each name; names that differ only in case are refused
	Body    []byte            // sent byte for byte
	Timeout time.Duration     // of one attempt; 0 means the worker's default
}

// Job makes the call a job under key. What the job leaves open (id, cost, …)
// has its zero value and may be filled in. The error is a
// [*throttle.InvalidError], and never contains the URL.
func (r Request) Job(key string) (throttle.Job, error) {
	if err := throttle.ValidateKey(key); err != nil {
		return throttle.Job{}, err
	}
	if err := r.Validate(); err != nil {
		return throttle.Job{}, err
	}
	return throttle.Job{Key: key, Type: Type, Payload: r.payload(), Timeout: r.Timeout}, nil
}

func (r Request) method() string {
	if r.Method == "" {
		return http.MethodPost
	}
	return r.Method
}
