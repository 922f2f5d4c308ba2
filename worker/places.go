package worker

import (
	"slices"
	"sync"
	"time"
)

// places admits jobs to the worker's limited number of places, the keys taking
// turns: a key with a mountain of jobs does not keep a key with one waiting. Jobs
// of one key are admitted in the order they came.
type places struct {
	mu     sync.Mutex
	free   int
	closed bool
	lines  map[string][]*held
	turns  []string // keys with jobs in line, the next one first
	admit  func([]*held)
	room   chan struct{} // holds one message: there is a free place
}

func newPlaces(n int, admit func([]*held)) *places {
	return &places{free: n, lines: make(map[string][]*held), admit: admit, room: make(chan struct{}, 1)}
}

// full tells whether a job that came now would have to wait.
func (p *places) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free == 0 && !p.closed
}

// stale takes out the lines whose first job came before the given instant: other
// workers may have room for them. A line goes as a whole, or its order would be lost.
func (p *places) stale(before time.Time) (jobs []*held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns = slices.DeleteFunc(p.turns, func(key string) bool {
		line := p.lines[key]
		if !line[0].arrived.Before(before) {
			return false
		}
		jobs = append(jobs, line...)
		delete(p.lines, key)
		return true
	})
	return jobs
}

// add puts jobs in line and admits what fits. It returns the jobs it refuses,
// which are all once the places are closed.
func (p *places) add(jobs []*held) (refused []*held) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return jobs
	}
	for _, h := range jobs {
		key := h.hold.Key
		if len(p.lines[key]) == 0 {
			p.turns = append(p.turns, key)
		}
		p.lines[key] = append(p.lines[key], h)
	}
	p.fill()
	return nil
}

// leave frees n places.
func (p *places) leave(n int) {
	p.mu.Lock()
	p.free += n
	p.fill()
}

// fill admits jobs while there is room, and unlocks. Admitting under the lock keeps
// the order of a key.
func (p *places) fill() {
	defer p.mu.Unlock()
	var in []*held
	for p.free > 0 && len(p.turns) > 0 {
		key := p.turns[0]
		p.turns = p.turns[1:]
		line := p.lines[key]
		in = append(in, line[0])
		p.free--
		if len(line) > 1 {
			p.lines[key] = line[1:]
			p.turns = append(p.turns, key)
		} else {
			delete(p.lines, key)
		}
	}
	if len(in) > 0 {
		p.admit(in)
	}
	if p.free > 0 {
		select {
		case p.room <- struct{}{}:
		default:
		}
	}
}

// close admits nobody any more and returns the jobs in line.
func (p *places) close() (rest []*held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, line := range p.lines {
		rest = append(rest, line...)
	}
	p.lines, p.turns = nil, nil
	return rest
}
