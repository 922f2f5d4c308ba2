package limiter

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var files embed.FS

// serverClock is the only clock that decides anything: Redis' own. It is a whole number of
// microseconds, which a Lua number holds exactly.
const serverClock = `
local function server_time()
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
`

// scripts puts scripts together, each for one sequence of algorithms. A decision is so short
// that even the making of functions would be a good part of it: so the code of each
// rule stands in the script as often as there are rules, one after the other.
//
// The file of an algorithm has sections, which begin with "--- NAME". In the files of what is
// done, "--@ NAME" stands for that section of a rule; what is between "--@ each" and "--@ end" is
// repeated for each rule. In it @ is the number of the rule, and ARGV[n@] the n-th of its
// arguments.
type scripts struct {
	clock string
	mu    sync.Mutex
	made  map[string]scriptSet
}

type scriptSet struct{ take, hold, cancel *redis.Script }

func newScripts(clock string) *scripts {
	return &scripts{clock: clock, made: make(map[string]scriptSet)}
}

// of are the scripts for rules of these algorithms, in their order.
func (s *scripts) of(kinds []Algorithm) scriptSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprint(kinds)
	if _, ok := s.made[name]; !ok {
		head := s.clock + "local now, cost = server_time(), tonumber(ARGV[1])\n" + source("stored")
		for _, part := range sharedParts {
			if slices.ContainsFunc(kinds, part.needed) {
				head += source(part.name)
			}
		}
		take := head + unroll(source("take"), kinds, 0)
		s.made[name] = scriptSet{
			take:   redis.NewScript(take + "return reply\n"),
			hold:   redis.NewScript(take + unroll(source("hold"), kinds, 0) + "return reply\n"),
			cancel: redis.NewScript(head + unroll(source("cancel"), kinds, 2)),
		}
	}
	return s.made[name]
}

// sharedParts are what algorithms share, and which need it.
var sharedParts = []struct {
	name   string
	needed func(Algorithm) bool
}{
	{"exact", func(a Algorithm) bool { return a == SlidingCounterAlgorithm || a == TokenBucketAlgorithm }},
	{"weigh", func(a Algorithm) bool { return a == SlidingCounterAlgorithm }},
	{"log", func(a Algorithm) bool { return a == SlidingLogAlgorithm }},
}

// scriptNames are the files of the algorithms, and how many arguments these take.
var scriptNames = map[Algorithm]struct {
	file string
	args int
}{
	FixedWindowAlgorithm: {"fixedwindow", 2}, SlidingLogAlgorithm: {"slidinglog", 2},
	SlidingCounterAlgorithm: {"slidingcounter", 2}, TokenBucketAlgorithm: {"tokenbucket", 5},
	LeakyBucketAlgorithm: {"leakybucket", 5},
}

// firstArgs is how many arguments stand before those of the rules.
const firstArgs = 2

var ruleArg = regexp.MustCompile(`ARGV\[(-?\d+)@\]`)

// unroll repeats what is for each rule. before is how many arguments of a rule
// come before those that its algorithm takes.
func unroll(text string, kinds []Algorithm, before int) string {
	var out, each strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "--@ each"):
			inside = true
		case strings.HasPrefix(line, "--@ end"):
			base := firstArgs + before
			for i, a := range kinds {
				out.WriteString(ofRule(each.String(), a, i+1, base))
				base += scriptNames[a].args + before
			}
			inside = false
			each.Reset()
		case inside:
			each.WriteString(line)
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// ofRule puts in the sections of an algorithm, and the number and arguments of a rule.
func ofRule(text string, a Algorithm, number, base int) string {
	sections := sectionsOf(source(scriptNames[a].file))
	var out strings.Builder
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "--@ "); ok {
			line = sections[strings.TrimSpace(name)]
		}
		out.WriteString(line)
	}
	filled := ruleArg.ReplaceAllStringFunc(out.String(), func(arg string) string {
		n, _ := strconv.Atoi(ruleArg.FindStringSubmatch(arg)[1]) // digits
		return "ARGV[" + strconv.Itoa(base+n) + "]"
	})
	return strings.ReplaceAll(filled, "@", strconv.Itoa(number))
}

// sectionsOf are the sections of a file by name.
func sectionsOf(text string) map[string]string {
	sections := make(map[string]string)
	name := ""
	for line := range strings.Lines(text) {
		if next, ok := strings.CutPrefix(line, "--- "); ok {
			name = strings.TrimSpace(next)
		} else if name != "" {
			sections[name] += line
		}
	}
	return sections
}

func source(name string) string {
	b, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the name is a constant of this package
	}
	return string(b)
}
