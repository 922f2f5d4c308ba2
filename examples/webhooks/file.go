package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// readEvents reads a file with one JSON object a line. Of a line, key, id and body
// count: whatever else a job may say, every event goes to the receiver at once.
// Keys that have no limit of their own get other.
func readEvents(in io.Reader, receiverURL string, limits []throttle.Policy, other throttle.Limit) ([]destination, error) {
	var all []destination
	place := make(map[string]int) // of each key in all
	type name struct{ key, id string }
	seen := make(map[name]int) // the line it is in
	reader := httpjob.NewReader(in, httpjob.Defaults{URL: receiverURL}, 0)
	for {
		job, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err // a *httpjob.LineError tells the line
		}
		event := name{job.Key, job.ID}
		if first, twice := seen[event]; twice {
			return nil, fmt.Errorf("line %d: id %q is that of line %d as well: want each id once for a key", reader.Line(), job.ID, first)
		}
		seen[event] = reader.Line()

		at, known := place[job.Key]
		if !known {
			at = len(all)
			place[job.Key] = at
			all = append(all, newDestination(job.Key, limitOf(job.Key, limits, other)))
		}
		all[at].add(job.ID, job.Payload)
	}
	if len(all) == 0 {
		return nil, errors.New("there are no events in it: want one JSON object a line, such as {\"id\":\"evt_1\",\"key\":\"billing\",\"payload\":{\"paid\":true}}")
	}
	return all, nil
}

func limitOf(key string, limits []throttle.Policy, other throttle.Limit) throttle.Limit {
	for _, p := range limits {
		if p.Key == key {
			return p.Limit
		}
	}
	return other
}
