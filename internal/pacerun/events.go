package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// events sends a file of real events through the command line: enqueue, a daemon
// and a receiver that compares payloads.
func events(ctx context.Context, s *sheet) error {
	if eventsFile == "" {
		fmt.Fprint(os.Stderr, " skipped, no -events;")
		return nil
	}
	file, err := os.ReadFile(eventsFile)
	if err != nil {
		return err
	}
	payloads, ids, err := readEvents(file)
	if err != nil {
		return err
	}
	rd, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = rd.Close() }()
	limits := make(map[string]throttle.Limit)
	policies := []throttle.Policy{}
	for key := range ids {
		limits[key] = limit("20/s", 5)
		policies = append(policies, throttle.Policy{Key: key, Limit: limits[key]})
	}
	if _, err := newSystem(ctx, rd.Client(), policies...); err != nil {
		return err
	}
	sink := &sink{payloads: payloads, keyOf: make(map[string]string)}
	for key, of := range ids {
		for _, id := range of {
			sink.keyOf[string(payloads[id])] = key
			sink.total++
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: sink, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	d, err := startDaemon("--redis", rd.URL())
	if err != nil {
		return err
	}
	defer d.stop()
	dir, err := binaries()
	if err != nil {
		return err
	}
	enqueue := exec.CommandContext(ctx, filepath.Join(dir, "enqueue"),
		"--redis", rd.URL(), "--file", eventsFile, "--url", "http://"+l.Addr().String()+"/")
	enqueue.Stderr = os.Stderr
	if err := enqueue.Run(); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	if err := until(ctx, time.Minute, func() bool { return sink.count() >= sink.total }); err != nil {
		return fmt.Errorf("%d of %d events arrived: %w", sink.count(), sink.total, err)
	}
	reports, err := throttletest.Measure(limits, sink.events(), nil)
	if err != nil {
		return err
	}
	s.between("events arrived", float64(sink.count()), float64(sink.total), float64(sink.total))
	s.atMost("payloads not byte for byte", float64(sink.damaged), 0)
	for _, k := range reports {
		s.atMost("excess of key "+k.Key+", jobs", k.Excess, 1)
		s.between("achieved/configured of key "+k.Key, k.Ratio, 0.99, 1.01)
	}
	return nil
}

// readEvents returns the payload of each event as it stands in the file, and the
// ids by key.
func readEvents(file []byte) (payloads map[string][]byte, ids map[string][]string, err error) {
	payloads, ids = make(map[string][]byte), make(map[string][]string)
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		var e struct {
			ID, Key string
			Payload json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, nil, err
		}
		payloads[e.ID] = bytes.Clone(e.Payload)
		ids[e.Key] = append(ids[e.Key], e.ID)
	}
	return payloads, ids, lines.Err()
}

// sink takes bodies and finds the events they belong to.
type sink struct {
	payloads map[string][]byte
	keyOf    map[string]string // by body
	total    int

	mu       sync.Mutex
	arrivals []throttletest.Event
	damaged  int
}

func (k *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	key, known := k.keyOf[string(body)]
	if err != nil || !known {
		k.damaged++
		return
	}
	k.arrivals = append(k.arrivals, throttletest.Event{Key: key, At: at})
}

func (k *sink) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.arrivals) + k.damaged
}

func (k *sink) events() []throttletest.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]throttletest.Event(nil), k.arrivals...)
}
