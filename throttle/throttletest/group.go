package throttletest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// ownDir makes the directory of one server among several. With an empty dir the
// server takes a temporary one of its own.
func ownDir(dir, name string) (string, error) {
	if dir == "" {
		return "", nil
	}
	dir = filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a directory for redis-server: %w", err)
	}
	return dir, nil
}

// closeAll closes them at the same time, since each takes a moment to leave. It
// passes over those that never started.
func closeAll(servers ...*Redis) error {
	errs := make([]error, len(servers))
	var closing sync.WaitGroup
	for i, r := range servers {
		if r != nil {
			closing.Go(func() { errs[i] = r.Close() })
		}
	}
	closing.Wait()
	return errors.Join(errs...)
}
