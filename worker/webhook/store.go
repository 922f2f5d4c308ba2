package webhook

import (
	"context"
	_ "embed" // of the script
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The hash of the endpoints, and its field that changes with each write. No id has a colon.
const (
	recordsKey   = "weir:endpoints"
	versionField = ":version"
)

//go:embed lua/put.lua
var putSource string

var putScript = redis.NewScript(putSource)

// store is the records as texts, and a copy of them all.
type store struct {
	client redis.UniversalClient

	mu   sync.Mutex
	last *snapshot
}

// read gives a record, empty if there is none.
func (s *store) read(ctx context.Context, id string) (string, error) {
	text, err := s.client.HGet(ctx, recordsKey, id).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, err
}

// put replaces a record by another, either empty for none, and tells whether it was still there.
func (s *store) put(ctx context.Context, id, before, after string) (bool, error) {
	return putScript.Run(ctx, s.client, []string{recordsKey}, id, before, after, compactUUID()).Bool()
}

// A snapshot is all endpoints at one moment. Nobody changes it.
type snapshot struct {
	version   string
	endpoints map[string]Endpoint
	ids       []string // of the endpoints, sorted
	damaged   error    // names the records that could not be read
}

// all reads every endpoint, from Redis only if one has changed since the last time.
func (s *store) all(ctx context.Context) (*snapshot, error) {
	version, err := s.read(ctx, versionField)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if version != "" && last != nil && last.version == version {
		return last, nil
	}
	records, err := s.client.HGetAll(ctx, recordsKey).Result()
	if err != nil {
		return nil, err
	}
	taken := newSnapshot(records)
	s.mu.Lock()
	s.last = taken
	s.mu.Unlock()
	return taken, nil
}

func newSnapshot(records map[string]string) *snapshot {
	t := &snapshot{version: records[versionField], endpoints: make(map[string]Endpoint)}
	delete(records, versionField)
	var damaged []error
	for _, id := range slices.Sorted(maps.Keys(records)) {
		e, err := decodeEndpoint(id, records[id])
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		t.endpoints[id] = e
		t.ids = append(t.ids, id)
	}
	const most = 5
	if n := len(damaged); n > most {
		damaged = append(damaged[:most], fmt.Errorf("and %d more", n-most))
	}
	t.damaged = errors.Join(damaged...)
	return t
}
