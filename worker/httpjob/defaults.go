package httpjob

import (
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/weirq/weir/throttle"
)

// Defaults fill what a line or a caller leaves out.
type Defaults struct {
	Key     string
	URL     string
	Method  string            // empty means POST
	Headers map[string]string // joined with a line's own; for the same name, the line's counts

	Success   []string // statuses, see Request; none means "2xx"
	Redirects int      // to follow, 0 to MaxRedirects

	Cost      int64         // cost units; 0 means 1
	Delay     time.Duration // 0 means at once
	NotBefore time.Time     // in place of a Delay; zero, or what is past, means at once
	Timeout   time.Duration // of one attempt; 0 means the worker's default
	// MaxAttempts is how many there may be; 0 means the worker's default.
	MaxAttempts int
	Priority    int // see throttle.Job
	TTL         time.Duration
	Deadline    time.Time
	Dedupe      *throttle.Dedupe // a line's own replaces it as a whole
	Policy      *throttle.Policy

	MaxJobSize int              // bytes of body; 0 means throttle.DefaultMaxJobSize
	Now        func() time.Time // what a delay counts from; nil means time.Now. Give it the clock of Redis where that may differ
}

// Validate tells the first default that no job could be made with, as a
// [*throttle.InvalidError].
func (d Defaults) Validate() error {
	r := d.request()
	if r.URL == "" {
		r.URL = "http://left.out"
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if d.Delay != 0 && !d.NotBefore.IsZero() {
		return invalid("not_before", described("beside delay"), "only one of the two")
	}
	_, err := d.finish(throttle.Job{Key: orElse(d.Key, "left out"), Type: Type})
	return err
}

// request is the call that the defaults are.
func (d Defaults) request() Request {
	return Request{
		Method: d.Method, URL: d.URL, Headers: d.Headers, Timeout: d.Timeout, Success: d.Success, Redirects: d.Redirects,
	}
}

// Job makes a job of the defaults alone, ready to enqueue. An empty id means a
// new one.
func (d Defaults) Job(id string, body []byte) (throttle.Job, error) {
	if err := d.validateBody("body", body); err != nil {
		return throttle.Job{}, err
	}
	r := d.request()
	r.Body = body
	j, err := r.Job(d.Key)
	if err != nil {
		return throttle.Job{}, err
	}
	j.ID = id
	return d.finish(j)
}

// finish adds what is not part of the call and validates the job. An id is made
// here, not by the queue, so that a job whose answer was lost can be enqueued again.
func (d Defaults) finish(j throttle.Job) (throttle.Job, error) {
	if j.ID == "" {
		j.ID = throttle.NewJobID()
	}
	j.Cost, j.Policy, j.Priority, j.Dedupe = d.Cost, d.Policy, d.Priority, d.Dedupe
	j.NotBefore, j.TTL, j.Deadline, j.MaxAttempts = d.NotBefore, d.TTL, d.Deadline, d.MaxAttempts
	if d.Delay < 0 {
		return throttle.Job{}, invalid("delay", d.Delay, allowedDelay)
	}
	if d.TTL >= throttle.MinTTL && d.TTL <= d.Delay {
		return throttle.Job{}, invalid("ttl", d.TTL, fmt.Sprintf("more than delay %v: both count from the enqueue", d.Delay))
	}
	if d.Delay > 0 {
		j.NotBefore = d.now().Add(d.Delay)
	}
	if j.NotBefore.Year() < 1970 { // as past as any other, but not storable
		j.NotBefore = time.Time{}
	}
	if err := j.Validate(d.maxSize()); err != nil {
		return throttle.Job{}, err
	}
	return j, nil
}

// validateBody refuses what the job would be refused for, by the name that the
// body was given under.
func (d Defaults) validateBody(field string, body []byte) error {
	if n := len(body); n > d.maxSize() {
		return invalid(field, described(fmt.Sprintf("of %d bytes", n)), fmt.Sprintf("at most %d bytes", d.maxSize()))
	}
	return nil
}

func (d Defaults) maxSize() int {
	if d.MaxJobSize == 0 {
		return throttle.DefaultMaxJobSize
	}
	return d.MaxJobSize
}

func (d Defaults) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

// headers joins own with the defaults, whatever the case of the names, in a map
// of its own.
func (d Defaults) headers(own map[string]string) map[string]string {
	all := make(map[string]string, len(own)+len(d.Headers)+1)
	maps.Copy(all, own)
	for name, value := range d.Headers {
		if !has(own, name) {
			all[name] = value
		}
	}
	return all
}

func has(headers map[string]string, name string) bool {
	for n := range headers {
		if http.CanonicalHeaderKey(n) == http.CanonicalHeaderKey(name) {
			return true
		}
	}
	return false
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
