package httpjob_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weirq/weir/worker/httpjob"
)

// A file with one job a line; the URL is the same for all.
func ExampleReader() {
	const file = `{"id":"evt_1","key":"billing","payload":{"paid": true}}
{"id":"evt_2","key":"billing","payload":
{"id":"evt_3","key":"search","body":"plain text"}
`
	r := httpjob.NewReader(strings.NewReader(file), httpjob.Defaults{URL: "https://example.com/hook"}, 0)
	for {
		job, err := r.Next()
		var bad *httpjob.LineError
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.As(err, &bad):
			fmt.Println(bad)
		case err != nil:
			fmt.Println("reading stopped:", err)
			return
		default:
			fmt.Println(r.Line(), job.Key, job.ID)
		}
	}
	// Output:
	// 1 billing evt_1
	// line 2, column 40: not valid JSON: unexpected end of JSON input
	// 3 search evt_3
}

// A call becomes a job for throttle.Queue.Enqueue.
func ExampleRequest_Job() {
	job, err := httpjob.Request{
		URL:     "https://example.com/hook",
		Headers: map[string]string{"Content-Type": "application/json"},
		Body:    []byte(`{"paid":true}`),
	}.Job("billing")
	fmt.Println(job.Key, job.Type, err)

	_, err = httpjob.Request{URL: "example.com/hook"}.Job("billing")
	fmt.Println(err)
	// Output:
	// billing http <nil>
	// url without http:// or https:// in front is not allowed: want an absolute URL such as https://example.com/hook
}
