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
		limits[key] = limit("5/s", 1) // slow enough that a first call 30 ms late is not 1 % of the run
		policies = append(policies, throttle.Policy{Key: key, Limit: limits[key]})
	}
	sys, err := newSystem(ctx, rd.Client(), policies...)
	if err != nil {
		return err
	}
	sink, err := newSink(payloads, ids)
	if err != nil {
		return err
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
	if err := until(ctx, time.Minute, func() bool { return sink.count() >= len(payloads) }); err != nil {
		return fmt.Errorf("%d of %d events arrived: %w", sink.count(), len(payloads), err)
	}
	// Only when no job is left can none arrive again.
	left, failed := int64(0), error(nil)
	if err := until(ctx, time.Minute, func() bool {
		left, failed = jobsLeft(ctx, sys.queue, limits)
		return failed != nil || left == 0
	}); err != nil {
		return fmt.Errorf("%d jobs have not ended: %w", left, err)
	}
	if failed != nil {
		return failed
	}
	reports, err := throttletest.Measure(limits, sink.events(), nil)
	if err != nil {
		return err
	}
	missing, again, damaged := sink.verdict()
	s.add("events sent", float64(len(payloads)), "", true)
	s.atMost("events that did not arrive", float64(missing), 0)
	s.atMost("events that arrived again", float64(again), 0)
	s.atMost("payloads not byte for byte", float64(damaged), 0)
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

// jobsLeft counts the jobs of all keys that have not ended.
func jobsLeft(ctx context.Context, q *throttle.Queue, keys map[string]throttle.Limit) (left int64, err error) {
	for key := range keys {
		info, err := q.Key(ctx, key)
		if err != nil {
			return 0, err
		}
		left += info.Waiting + info.Delayed + info.InFlight
	}
	return left, nil
}

// sink takes bodies and finds the events they belong to.
type sink struct {
	keyOf map[string]string // by body

	mu       sync.Mutex
	arrivals []throttletest.Event
	times    map[string]int // that a body arrived
	damaged  int
}

func newSink(payloads map[string][]byte, ids map[string][]string) (*sink, error) {
	k := &sink{keyOf: make(map[string]string), times: make(map[string]int)}
	for key, of := range ids {
		for _, id := range of {
			body := string(payloads[id])
			if _, twice := k.keyOf[body]; twice {
				return nil, fmt.Errorf("event %q: its id or its payload is in the file twice: arrivals could not be told apart", id)
			}
			k.keyOf[body] = key
		}
	}
	return k, nil
}

func (k *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	k.mu.Lock()
	defer k.mu.Unlock()
	key, known := k.keyOf[string(body)]
	if err != nil || !known {
		k.damaged++
		return
	}
	k.times[string(body)]++
	k.arrivals = append(k.arrivals, throttletest.Event{Key: key, At: at})
}

// verdict counts the events that never arrived, the arrivals beyond the first, and
// the bodies of no event.
func (k *sink) verdict() (missing, again, damaged int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for body := range k.keyOf {
		n := k.times[body]
		if n == 0 {
			missing++
		}
		again += max(0, n-1)
	}
	return missing, again, k.damaged
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
