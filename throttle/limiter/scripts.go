package limiter

import (
	"embed"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var files embed.FS

// scripts puts the scripts together: a clock, what all algorithms share, the
// algorithms that the rules of a limiter need and no others, and what to do with them.
type scripts struct {
	clock string
	mu    sync.Mutex
	made  map[string]*redis.Script
}

// serverClock is the only clock that decides anything: Redis' own. It is a whole number of
// microseconds, which a Lua number holds exactly.
const serverClock = `
local function server_time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
`

func newScripts(clock string) *scripts {
	return &scripts{clock: clock, made: make(map[string]*redis.Script)}
}

// of are the scripts that take and cancel charges under rules of these algorithms.
func (s *scripts) of(kinds []Algorithm) (take, cancel *redis.Script) {
	needed := slices.Clone(kinds)
	slices.Sort(needed)
	needed = slices.Compact(needed)
	var text strings.Builder
	text.WriteString(s.clock)
	text.WriteString("local now, cost = server_time(), tonumber(ARGV[1])\n")
	text.WriteString(source("stored"))
	if slices.ContainsFunc(needed, Algorithm.divides) {
		text.WriteString(source("exact"))
	}
	text.WriteString("local algorithms, algorithm = {}\n")
	for _, a := range needed {
		name := scriptNames[a]
		text.WriteString("do\n" + source(name) + "algorithms['" + name + "'] = algorithm\nend\n")
	}
	return s.script(text.String() + source("take")), s.script(text.String() + source("cancel"))
}

// divides tells the algorithms that need exact.lua.
func (a Algorithm) divides() bool { return a == SlidingCounterAlgorithm || a == TokenBucketAlgorithm }

func (s *scripts) script(text string) *redis.Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[text] == nil {
		s.made[text] = redis.NewScript(text)
	}
	return s.made[text]
}

func source(name string) string {
	b, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the name is a constant of this package
	}
	return string(b)
}
