package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

// A field is a setting with one value.
type field struct {
	kind   kind
	want   string                 // what is allowed, for errors
	set    func(text string) bool // takes a value unless it is not allowed
	value  func() any             // the value that is set; nil for the fields of policies
	secret bool                   // errors do not show the value
}

// A kind is what YAML must take a value for.
type kind int

const (
	text   kind = iota
	number      // whole
	truth       // true or false
)

const (
	day      = 24 * time.Hour
	minLease = max(time.Second, 10*throttle.DefaultLead)

	maxDead = 100_000_000 // what throttle.Retention allows

	maxPriority = 100 // asynq makes a list of as many entries at every look
)

// fields has every field with one value outside of the lists, by its path in the
// file. The bounds of a setting stand here and nowhere else.
func (c *Config) fields() map[string]field {
	w := &c.Worker
	return map[string]field{
		"redis":                     {want: "text", secret: true, set: func(text string) bool { c.Redis = text; return true }, value: valueOf(&c.Redis)},
		"shards":                    shards(&c.Shards),
		maxWaitingPath:              maxWaiting(&c.MaxWaiting),
		"dead_letters.max":          whole(&c.DeadLetters.Max, 1, maxDead),
		"dead_letters.age":          span(&c.DeadLetters.Age, time.Minute, throttle.MaxTTL),
		"worker.concurrency":        whole(&w.Concurrency, 1, 100_000),
		"worker.shutdown_timeout":   span(&w.ShutdownTimeout, time.Millisecond, day),
		"worker.timeout":            span(&w.Timeout, time.Millisecond, day),
		"worker.lease":              span(&w.Lease, minLease, day),
		"worker.retry.base":         span(&w.Retry.Base, time.Millisecond, day),
		"worker.retry.cap":          span(&w.Retry.Cap, time.Millisecond, 366*day),
		"worker.retry.max_attempts": whole(&w.Retry.MaxAttempts, 1, 1_000_000),
		"worker.retry.delays":       delays(&w.Retry.Delays),
		"http.listen":               listen(&c.HTTP.Listen),
		"http.proxy":                proxy(&c.HTTP.Proxy),
		"http.failure_callback":     failureCallback(&c.HTTP.FailureCallback),
		allowNetworksPath:           allowNetworks(&c.HTTP.AllowNetworks),
	}
}

// maxWaitingPath is of a field that a running process takes on.
const maxWaitingPath = "max_waiting"

// What has any number of entries.
const (
	policiesPath = "policies"
	poolsPath    = "worker.pools"
)

// children are the names that may stand right below the path of a section.
func (c *Config) children(section string) []string {
	names := make(map[string]bool)
	for _, path := range append(slices.Collect(maps.Keys(c.fields())), policiesPath, poolsPath) {
		below, ok := path, true
		if section != "" {
			below, ok = strings.CutPrefix(path, section+".")
		}
		if ok {
			name, _, _ := strings.Cut(below, ".")
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func valueOf[T any](in *T) func() any { return func() any { return *in } }

// whole reads digits only: elsewhere in YAML 010 is 8, and 1_000 may be a text.
func whole[T int | int64](in *T, lowest, highest T) field {
	want := fmt.Sprintf("a whole number from %d to %d", lowest, highest)
	return field{kind: number, want: want, value: valueOf(in), set: func(text string) bool {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < int64(lowest) || n > int64(highest) || strconv.FormatInt(n, 10) != text {
			return false
		}
		*in = T(n)
		return true
	}}
}

func maxWaiting(in **int64) field {
	var n int64
	f := whole(&n, 0, throttle.MaxWaitingBound)
	f.want = fmt.Sprintf("a whole number from 1 to %d, or 0 for no bound", throttle.MaxWaitingBound)
	read := f.set
	f.set = func(text string) bool {
		if !read(text) {
			return false
		}
		*in = &n
		return true
	}
	f.value = func() any {
		if *in == nil {
			return nil
		}
		return **in
	}
	return f
}

func flag(in *bool) field {
	return field{kind: truth, want: "true or false", value: valueOf(in), set: func(text string) bool {
		*in = text == "true"
		return *in || text == "false"
	}}
}

func span(in *time.Duration, shortest, longest time.Duration) field {
	want := fmt.Sprintf("a duration with its unit, such as 10s or 1m30s, from %s to %s", short(shortest), short(longest))
	return field{want: want, value: valueOf(in), set: func(text string) bool {
		d, err := time.ParseDuration(text)
		if err != nil || d < shortest || d > longest {
			return false
		}
		*in = d
		return true
	}}
}

// short writes 24h rather than 24h0m0s, and 1m rather than 1m0s.
func short(d time.Duration) string {
	s := strings.Replace(d.String(), "h0m0s", "h", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}

// NoListen is another way to write a Listen that is empty, for the environment,
// where empty means not given.
const NoListen = "none"

func listen(in *string) field {
	want := fmt.Sprintf(`host:port or :port with a port from 0 to 65535, such as 127.0.0.1:8080, or %q`, NoListen)
	return field{want: want, value: valueOf(in), set: func(text string) bool {
		if text == "" || text == NoListen {
			*in = ""
			return true
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil || strings.ContainsAny(host, " /@") {
			return false
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		*in = text
		return true
	}}
}

func shards(in *int) field {
	f := whole(in, 0, throttle.MaxShards)
	f.want = fmt.Sprintf("a whole number from 1 to %d, or 0 for the one that is stored", throttle.MaxShards)
	return f
}

// pool is the priority of an asynq queue.
func pool(in *int) field { return whole(in, 1, maxPriority) }

// isPoolName tells whether jobs can name the pool.
func isPoolName(name string) bool {
	for _, char := range name {
		if char <= ' ' || char > '~' {
			return false
		}
	}
	return name != "" && len(name) <= throttle.MaxTokenBytes
}
