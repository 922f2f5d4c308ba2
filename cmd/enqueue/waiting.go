package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// waiting are the flags about how jobs wait: when and in which order they leave, and
// which of them are the same.
type waiting struct {
	priority            int
	delay, ttl          time.Duration
	deadline, notBefore string
	dedupe              throttle.Dedupe
}

func (w *waiting) register(f *pflag.FlagSet) {
	const inRFC3339 = "in RFC 3339, such as 2026-12-01T06:00:00Z"
	f.IntVar(&w.priority, "priority", 0,
		fmt.Sprintf("`N` from 0 to %d, which goes first; a job gains one for each minute that it waits, or what its policy says", throttle.MaxPriority))
	f.DurationVar(&w.delay, "delay", 0, "`DURATION` before which it does not leave, such as 1.5s")
	f.StringVar(&w.notBefore, "not-before", "", "`TIME` before which it does not leave, "+inRFC3339+"; what is past means now")
	f.DurationVar(&w.ttl, "ttl", 0,
		"`DURATION` that it may wait for its first attempt, counted from the enqueue, a delay included; then it expires "+
			"(default that of the policy)")
	f.StringVar(&w.deadline, "deadline", "", "`TIME` at which all has to be over, "+inRFC3339+": no attempt begins later; not before its delay is over")
	f.StringVar(&w.dedupe.Name, "dedupe", "", "`NAME` that jobs which are the same one have in common (default the id)")
	f.BoolVar(&w.dedupe.Content, "dedupe-content", false,
		"take jobs with the same call, headers and body, for the same one")
	f.DurationVar(&w.dedupe.Window, "dedupe-window", 0,
		"`DURATION` for which a job that is done is still the same one")
	f.BoolVar(&w.dedupe.WhileWaiting, "while-waiting", false,
		"take jobs for the same one only until the first begins its first attempt")
	f.BoolVar(&w.dedupe.Replace, "replace", false, "put the newer one in the place of the one that waits")
	f.DurationVar(&w.dedupe.Debounce, "debounce", 0,
		"`DURATION` to delay the job by, and anew each time that a newer one replaces it")
	f.DurationVar(&w.dedupe.MaxDebounce, "max-debounce", 0,
		"`DURATION` that newer ones can put it off in all (default ten times --debounce)")
}

// dedupeFlags are those of which one alone makes jobs known by more than an id.
var dedupeFlags = []string{"dedupe", "dedupe-content", "dedupe-window", "while-waiting", "replace", "debounce", "max-debounce"}

// into adds what the flags say to d.
func (w *waiting) into(d *httpjob.Defaults, changed func(flag string) bool) (err error) {
	d.Priority, d.Delay, d.TTL = w.priority, w.delay, w.ttl
	if d.Deadline, err = instant("deadline", w.deadline, changed); err != nil {
		return err
	}
	if d.NotBefore, err = instant("not-before", w.notBefore, changed); err != nil {
		return err
	}
	if w.ttl > 0 && w.ttl <= w.delay {
		return fmt.Errorf("--ttl %v is not allowed: want more than --delay %v: both count from the enqueue", w.ttl, w.delay)
	}
	if w.dedupe.MaxDebounce != 0 && !changed("debounce") {
		return errors.New("--max-debounce needs --debounce beside it")
	}
	for _, flag := range dedupeFlags {
		if changed(flag) {
			d.Dedupe = &w.dedupe
		}
	}
	return nil
}

// expiresDelayed refuses a job whose TTL is over before its delay is. now is the time by
// the clock of Redis.
func expiresDelayed(job throttle.Job, now time.Time) error {
	wait := job.NotBefore.Sub(now)
	if job.TTL == 0 || wait < job.TTL {
		return nil
	}
	return &throttle.InvalidError{
		Field: "ttl", Value: job.TTL,
		Allowed: fmt.Sprintf("more than the %v until it may leave: it counts from the enqueue", wait.Round(time.Millisecond)),
	}
}

// instant reads a flag that gives a time.
func instant(flag, text string, changed func(flag string) bool) (time.Time, error) {
	if !changed(flag) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--%s %q is not allowed: want a time in RFC 3339, such as 2026-12-01T06:00:00Z", flag, text)
	}
	return t, nil
}
