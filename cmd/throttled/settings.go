package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/cmd/throttled/internal/config"
)

// settings are what serve runs with: flags, environment, file and defaults, settled.
type settings struct {
	file              string // name of the config file, empty for none
	config            config.Config
	scheduler, worker bool // the parts to run
	logLevel          slog.Level
	logJSON           bool
}

// flags of serve. Those with a place in the file are texts until they are settled.
type flags struct {
	schedulerOnly, workerOnly bool
}

const allowNetworkFlag = "allow-network"

// inFile are the flags that are fields of the file too.
var inFile = []struct{ flag, path, usage string }{
	{"redis", "redis", "Redis `URL`; empty for one inside of the process that keeps nothing"},
	{"listen", "http.listen", "`ADDRESS` of the metrics and health endpoints, none for nowhere (default 127.0.0.1:8080)"},
	{"concurrency", "worker.concurrency", "`N` jobs that run or wait for their slots at once (default 500)"},
	{"shutdown-timeout", "worker.shutdown_timeout", "`DURATION` that running jobs may take to end after a signal (default 10s)"},
	{allowNetworkFlag, "http.allow_networks", "`NETWORK` that calls may reach although it is not public, such as 127.0.0.0/8; may be given again (default none)"},
	{"http-proxy", "http.proxy", "`URL` of a proxy for calls, off, or environment for what HTTPS_PROXY and the like say (default off)"},
}

const (
	configFlag    = "config"
	logLevelFlag  = "log-level"
	logFormatFlag = "log-format"
)

func (f *flags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.String(configFlag, "", "config `FILE`, in YAML")
	for _, o := range inFile {
		if o.flag == allowNetworkFlag {
			set.StringArray(o.flag, nil, o.usage)
			continue
		}
		set.String(o.flag, "", o.usage)
	}
	set.BoolVar(&f.schedulerOnly, "scheduler-only", false, "run no worker")
	set.BoolVar(&f.workerOnly, "worker-only", false, "run no scheduler")
	set.String(logLevelFlag, "", "least `LEVEL` to log: debug (every attempt), info (attempts that failed), warn or error (default info)")
	set.String(logFormatFlag, "", "log `FORMAT`: text or json (default text)")
}

// settle finds the value of every setting.
func (f *flags) settle(set *pflag.FlagSet, env func(string) string) (settings, error) {
	s := settings{scheduler: !f.workerOnly, worker: !f.schedulerOnly, config: config.Default()}
	given := source{set, env}
	if name, from, ok := given.text(configFlag); ok {
		if name == "" {
			return s, fail(exitInvalid, "%s is empty: give it the name of a file, or leave it out", from)
		}
		s.file = name
		var err error
		if s.config, err = config.Load(name); err != nil {
			return s, fail(exitInvalid, "%w", err)
		}
	}
	var errs []error
	for _, o := range inFile {
		if text, from, ok := given.text(o.flag); ok {
			errs = append(errs, s.config.Set(o.path, text, from))
		}
	}
	if text, from, ok := given.text(logLevelFlag); ok {
		level, known := levels[text]
		s.logLevel = level
		errs = append(errs, unless(known, from, text, "debug, info, warn or error"))
	}
	if text, from, ok := given.text(logFormatFlag); ok {
		s.logJSON = text == "json"
		errs = append(errs, unless(s.logJSON || text == "text", from, text, "text or json"))
	}
	if !s.scheduler && s.config.Redis == "" {
		// Nobody would ever release anything to it.
		errs = append(errs, errors.New("--worker-only needs the Redis that the schedulers use: give its URL by --redis, WEIR_REDIS or redis in the config file"))
	}
	if err := errors.Join(errs...); err != nil {
		return s, fail(exitInvalid, "%w", err)
	}
	return s, nil
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func unless(allowed bool, from, text, want string) error {
	if allowed {
		return nil
	}
	return fmt.Errorf("%s %q is not allowed: want %s", from, text, want)
}

// source is where settings other than those of the file come from.
type source struct {
	flags *pflag.FlagSet
	env   func(string) string
}

// text is what a flag was given, or else its variable. from names which.
func (s source) text(flag string) (text, from string, ok bool) {
	if f := s.flags.Lookup(flag); f.Changed {
		if several, ok := f.Value.(pflag.SliceValue); ok {
			return strings.Join(several.GetSlice(), ","), "--" + flag, true
		}
		return f.Value.String(), "--" + flag, true
	}
	from = variable(flag)
	text = s.env(from)
	return text, from, text != ""
}

// variable names that of a flag. A flag that is given once for each network is not named
// like all of them.
func variable(flag string) string {
	if flag == allowNetworkFlag {
		flag = "http-allow-networks"
	}
	return "WEIR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
