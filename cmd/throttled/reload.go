package main

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strconv"

	"github.com/weirq/weir/cmd/throttled/internal/config"
	"github.com/weirq/weir/throttle"
)

// reloads reads the config file again at every hangup, until ctx ends.
func (d *daemon) reloads(ctx context.Context) error {
	loaded := d.settings.config.Policies
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.hangups:
			loaded = d.reload(ctx, loaded)
		}
	}
}

// reload puts in force what the config file says now for all processes: the policies, in
// place of those that were loaded before, and the bound on what waits. It returns the
// policies that are. Other settings need a restart. One record tells what came of it.
func (d *daemon) reload(ctx context.Context, loaded []throttle.Policy) []throttle.Policy {
	logger := d.logger.With("config", d.settings.file)
	if d.settings.file == "" {
		d.logger.Warn("reload refused", "problems", []string{"there is no config file"})
		return loaded
	}
	s, err := d.again()
	if err != nil {
		logger.Error("reload refused", "problems", problems(err))
		return loaded
	}
	if err := d.store(ctx, &s.config); err != nil {
		if errors.Is(err, throttle.ErrInvalid) {
			logger.Error("reload refused", "problems", problems(d.located(err, &s.config)))
		} else {
			logger.Error("reload failed", "error", err)
		}
		return loaded
	}
	level, policies := slog.LevelInfo, "as stored"
	var changes []any
	if d.ownPolicies(&s.config) {
		policies = strconv.Itoa(len(s.config.Policies))
		changes = compared(loaded, s.config.Policies)
		loaded = s.config.Policies
	}
	attributes := append([]any{"policies", policies, "max_waiting", d.boundText(&s.config)}, changes...)
	if paths := config.Changed(d.settings.config, s.config); len(paths) > 0 {
		level = slog.LevelWarn
		attributes = append(attributes, "needs_restart", paths)
	}
	logger.Log(ctx, level, "reloaded", attributes...)
	return loaded
}

// compared counts what is different between two lists of policies, for the log.
func compared(before, after []throttle.Policy) []any {
	old := make(map[string]throttle.Policy, len(before))
	for _, p := range before {
		old[p.Key] = p
	}
	added, changed := 0, 0
	for _, p := range after {
		was, known := old[p.Key]
		switch {
		case !known:
			added++
		case !reflect.DeepEqual(was, p):
			changed++
		}
		delete(old, p.Key)
	}
	return []any{"added", added, "changed", changed, "removed", len(old)}
}

// problems are the texts of an error, one for each thing that is wrong.
func problems(err error) (texts []string) {
	var file *config.Error
	if errors.As(err, &file) {
		return file.Lines()
	}
	return []string{err.Error()}
}
