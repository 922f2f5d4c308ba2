package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

const (
	defaultRedis = "redis://127.0.0.1:6379/0"
	redisEnv     = "WEIR_REDIS"
	maxBatch     = 10_000
)

// settings are the flags as given.
type settings struct {
	redis          string
	key, url       string
	method         string
	headers        []string
	data, dataFile string
	id             string
	cost, burst    int64
	timeout        time.Duration
	maxAttempts    int
	rate           string
	waiting
	file  string
	json  bool
	batch int

	changed func(flag string) bool // whether a flag was given at all
}

func (s *settings) register(f *pflag.FlagSet) {
	f.SortFlags = false
	// The default is told in words: the environment may hold a password.
	f.StringVar(&s.redis, "redis", "", "Redis `URL`; "+redisEnv+" in the environment, or else "+defaultRedis)
	f.StringVar(&s.key, "key", "", "`KEY` whose limit the job leaves under")
	f.StringVar(&s.url, "url", "", "`URL` to call, http or https")
	f.StringVar(&s.method, "method", "", "HTTP `METHOD` (default POST)")
	f.StringArrayVar(&s.headers, "header", nil, "`'NAME: VALUE'` to send; may be repeated")
	f.StringVar(&s.data, "data", "", "`BODY` to send, as it is")
	f.StringVar(&s.dataFile, "data-file", "", "`FILE` to send as the body, byte for byte; - is standard input")
	f.StringVar(&s.id, "id", "", "`ID` of the job; the same id again is the same job until that has ended (default a new one)")
	f.Int64Var(&s.cost, "cost", 1, "`UNITS` of the limit that the job uses")
	s.waiting.register(f)
	f.DurationVar(&s.timeout, "timeout", 0, "`DURATION` of one attempt (default the worker's)")
	f.IntVar(&s.maxAttempts, "max-attempts", 0, "`N` attempts in all, after which it is dead (default the worker's)")
	f.StringVar(&s.rate, "rate", "", "`RATE` of the key, such as 100/s or 1/24h; the latest one given counts, while the key has jobs or "+
		"its bucket is not empty, and only where no policy for exactly this key is stored")
	f.Int64Var(&s.burst, "burst", 1, "`UNITS` that may leave at once from an idle key; with --rate")
	f.StringVar(&s.file, "file", "", "`FILE` with one job a line; - is standard input")
	f.BoolVar(&s.json, "json", false, "print one JSON object a job, also of one that is refused")
	f.IntVar(&s.batch, "batch", 500, "`JOBS` of a file to enqueue at once, 1 to "+fmt.Sprint(maxBatch))
}

// exclusive refuses flags that cannot go together.
func (s *settings) exclusive() error {
	for _, pair := range [][2]string{
		{"file", "id"}, {"file", "data"}, {"file", "data-file"}, {"data", "data-file"},
		{"delay", "not-before"}, {"dedupe", "dedupe-content"},
	} {
		if s.changed(pair[0]) && s.changed(pair[1]) {
			return fmt.Errorf("--%s and --%s exclude each other: give one of them", pair[0], pair[1])
		}
	}
	return nil
}

// defaults checks the flags, and gives what they say about every job.
func (s *settings) defaults() (httpjob.Defaults, error) {
	none := httpjob.Defaults{}
	for _, flag := range []string{"key", "url", "method", "id", "rate", "data-file", "file", "dedupe"} {
		if s.changed(flag) && s.text(flag) == "" {
			return none, fmt.Errorf("--%s is empty: give it a value, or leave it out", flag)
		}
	}
	if s.cost < 1 {
		return none, fmt.Errorf("--cost %d is not allowed: want a whole number from 1 to %d", s.cost, int64(throttle.MaxCost))
	}
	if s.changed("max-attempts") && s.maxAttempts < 1 {
		return none, fmt.Errorf("--max-attempts %d is not allowed: want a whole number from 1", s.maxAttempts)
	}
	if s.batch < 1 || s.batch > maxBatch {
		return none, fmt.Errorf("--batch %d is not allowed: want a whole number from 1 to %d", s.batch, maxBatch)
	}
	headers, err := parseHeaders(s.headers)
	if err != nil {
		return none, err
	}
	policy, err := s.policy()
	if err != nil {
		return none, err
	}
	d := httpjob.Defaults{
		Key: s.key, URL: s.url, Method: s.method, Headers: headers,
		Cost: s.cost, Timeout: s.timeout, MaxAttempts: s.maxAttempts, Policy: policy,
	}
	if err := s.into(&d, s.changed); err != nil {
		return none, err
	}
	trial := d
	if d.Delay > 0 {
		trial.Deadline = time.Time{} // which of the two comes first is for the clock of Redis to say
	}
	return d, s.asFlag(trial.Validate())
}

func (s *settings) text(flag string) string {
	return map[string]string{
		"key": s.key, "url": s.url, "method": s.method, "id": s.id, "rate": s.rate, "data-file": s.dataFile, "file": s.file,
		"dedupe": s.dedupe.Name,
	}[flag]
}

func (s *settings) policy() (*throttle.Policy, error) {
	if s.rate == "" {
		if s.changed("burst") {
			return nil, errors.New("--burst needs --rate beside it")
		}
		return nil, nil
	}
	limit, err := throttle.ParseLimit(s.rate, s.burst)
	if err != nil {
		return nil, s.asFlag(err)
	}
	return &throttle.Policy{Limit: limit}, nil
}

// parseHeaders reads 'Name: value' texts. Their values are secret, and what has
// no colon may be nothing but a value.
func parseHeaders(texts []string) (map[string]string, error) {
	headers := make(map[string]string, len(texts))
	for i, text := range texts {
		name, value, found := strings.Cut(text, ":")
		if !found {
			return nil, fmt.Errorf("--header number %d has no colon: want 'Name: value'", i+1)
		}
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if _, twice := headers[name]; twice {
			return nil, fmt.Errorf("--header %q is given twice: want each name once", name)
		}
		headers[name] = strings.TrimSpace(value)
	}
	return headers, nil
}

// body is what --data or --data-file give. It reads no more than a job may hold.
func (s *settings) body(stdin io.Reader) ([]byte, error) {
	if s.dataFile == "" {
		return []byte(s.data), nil
	}
	in, closeIn, err := openInput(s.dataFile, stdin)
	if err != nil {
		return nil, fmt.Errorf("--data-file: %w", err)
	}
	defer closeIn()
	b, err := io.ReadAll(io.LimitReader(in, throttle.DefaultMaxJobSize+1))
	if err != nil {
		return nil, fmt.Errorf("--data-file: %w", err)
	}
	if len(b) > throttle.DefaultMaxJobSize {
		return nil, fmt.Errorf("--data-file is longer than a job may be: want at most %d bytes", throttle.DefaultMaxJobSize)
	}
	return b, nil
}

// openInput opens a file, or standard input for "-", which stays open.
func openInput(name string, stdin io.Reader) (in io.Reader, closeIn func(), err error) {
	if name == "-" {
		return stdin, func() {}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	return f, func() { _ = f.Close() }, nil
}

// redisURL is the Redis to use. from tells where it was given.
func (s *settings) redisURL() (url, from string) {
	if s.redis != "" {
		return s.redis, "--redis"
	}
	if u := os.Getenv(redisEnv); u != "" {
		return u, redisEnv
	}
	return defaultRedis, "--redis"
}
