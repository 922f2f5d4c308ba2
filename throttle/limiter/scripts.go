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
local now = redis.call('TIME')
now = now[1] * 1000000 + now[2]
`

// scripts puts scripts together, each for one sequence of algorithms. A decision is so short
// that even the making of functions would be a good part of it: so the code of each
// rule stands in the script as often as there are rules, one after the other.
//
// The file of an algorithm has sections, which begin with "--- NAME". In the files of what is
// done, "--@ NAME" stands for that section of a rule; what is between "--@ each" and "--@ end" is
// repeated for each rule. In it @ is the number of the rule, and ARGV[n@] the n-th of what its
// algorithm takes: an argument, or a number that stands in the script. QUEUE@ tells whether it is a queue.
type scripts struct {
	clock string
	mu    sync.Mutex
	made  map[string]scriptSet
}

type scriptSet struct{ take, hold, cancel luaScript }

// A luaScript is a script with its text.
type luaScript struct {
	*redis.Script
	source string
}

func newScript(text string) luaScript { return luaScript{redis.NewScript(text), text} }

func newScripts(clock string) *scripts {
	return &scripts{clock: clock, made: make(map[string]scriptSet)}
}

// A shape is all of a rule that its scripts depend on.
type shape struct {
	algorithm Algorithm
	whole     bool // a cost of 1 comes back in whole µs: there are no parts of one
	queue     bool
}

func (t *terms) shape() shape {
	return shape{t.kind(), !t.algorithm.Windowed() && t.rate == 1, t.algorithm == LeakyQueueAlgorithm}
}

// of are the scripts for rules of these shapes, in their order.
func (s *scripts) of(rules []shape) scriptSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := fmt.Sprint(rules)
	if _, ok := s.made[name]; !ok {
		head := s.clock + source("head")
		for _, part := range sharedParts {
			if slices.ContainsFunc(rules, func(r shape) bool { return part.needed(r.algorithm) }) {
				head += source(part.name)
			}
		}
		take := unroll(source("take"), rules, 0)
		s.made[name] = scriptSet{
			take:   newScript(head + "local reserves = false\n" + take + "return reply\n"),
			hold:   newScript(head + "local reserves = true\n" + take + unroll(source("hold"), rules, 0) + "return reply\n"),
			cancel: newScript(head + unroll(source("cancel"), rules, 2)),
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

// scriptFiles are the files of the algorithms: how many arguments they take, and which of these stand in the
// script if the rule is whole.
var scriptFiles = map[Algorithm]struct {
	file  string
	args  int
	fixed map[int]string
}{
	FixedWindowAlgorithm:    {"fixedwindow", 2, nil},
	SlidingLogAlgorithm:     {"slidinglog", 2, nil},
	SlidingCounterAlgorithm: {"slidingcounter", 2, nil},
	TokenBucketAlgorithm:    {"tokenbucket", 5, map[int]string{1: "1", 5: "0"}},
	LeakyBucketAlgorithm:    {"leakybucket", 5, map[int]string{1: "1", 3: "0", 5: "0"}},
}

// appendArgs adds what the scripts take of a rule.
func (t *terms) appendArgs(args []any, cost int64) []any {
	switch t.kind() {
	case TokenBucketAlgorithm:
		if t.rate == 1 {
			return append(args, t.period, t.burst, t.fill)
		}
		return append(args, t.rate, t.period, t.burst, t.fill, t.fillParts)
	case LeakyBucketAlgorithm:
		leak, parts := t.span(cost)
		if t.rate == 1 {
			return append(args, leak, t.fill)
		}
		return append(args, t.rate, leak, parts, t.fill, t.fillParts)
	default:
		return append(args, t.window, t.burst)
	}
}

// firstArgs is how many arguments stand before those of the rules.
const firstArgs = 2

var ruleArg = regexp.MustCompile(`ARGV\[(-?\d+)@\]`)

// unroll repeats what is for each rule. before is how many arguments of a rule
// come before those that its algorithm takes.
func unroll(text string, rules []shape, before int) string {
	var out, each strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "--@ each"):
			inside = true
		case strings.HasPrefix(line, "--@ end"):
			base := firstArgs + before
			for i, r := range rules {
				taken := ofRule(&out, each.String(), r, i+1, base)
				base += taken + before
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

// ofRule writes a text with the sections, the number and the arguments of a rule, and tells how many arguments
// its algorithm takes.
func ofRule(out *strings.Builder, text string, r shape, number, base int) (taken int) {
	file := scriptFiles[r.algorithm]
	sections := sectionsOf(source(file.file))
	var filled strings.Builder
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "--@ "); ok {
			line = sections[strings.TrimSpace(name)]
		}
		filled.WriteString(line)
	}
	arguments := make(map[int]string)
	for n := 1 - base; n <= file.args; n++ {
		switch fixed, ok := file.fixed[n]; {
		case n < 1:
			arguments[n] = fmt.Sprintf("ARGV[%d]", base+n)
		case r.whole && ok:
			arguments[n] = fixed
		default:
			taken++
			arguments[n] = fmt.Sprintf("ARGV[%d]", base+taken)
		}
	}
	done := ruleArg.ReplaceAllStringFunc(filled.String(), func(arg string) string {
		n, _ := strconv.Atoi(ruleArg.FindStringSubmatch(arg)[1]) // digits
		return arguments[n]
	})
	done = strings.ReplaceAll(done, "QUEUE@", strconv.FormatBool(r.queue))
	out.WriteString(strings.ReplaceAll(done, "@", strconv.Itoa(number)))
	return taken
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
