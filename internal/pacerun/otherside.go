package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest/provider"
	"github.com/weirq/weir/worker/httpjob"
)

// listenOn has a provider answer on this machine.
func listenOn(h http.Handler) (record *provider.Record, url string, done func(), err error) {
	record = provider.NewRecord(h, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", nil, err
	}
	server := &http.Server{Handler: record, ReadHeaderTimeout: 10 * time.Second}
	record.Attach(server)
	go func() { _ = server.Serve(l) }()
	return record, "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}

// enqueueCalls enqueues n calls of a URL under a key.
func enqueueCalls(ctx context.Context, sys *system, url, key string, n int) error {
	jobs := make([]throttle.Job, n)
	for i := range jobs {
		var err error
		if jobs[i], err = (httpjob.Request{URL: url}).Job(key); err != nil {
			return err
		}
		jobs[i].ID = strconv.Itoa(i + 1)
	}
	_, err := sys.queue.EnqueueMany(ctx, jobs)
	return err
}
