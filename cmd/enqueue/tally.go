package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

// A tally counts what became of the lines.
type tally struct {
	enqueued, duplicates, failed int
	last                         time.Time // the latest estimated departure
}

func (t *tally) add(r throttle.Receipt) {
	if r.Duplicate {
		t.duplicates++
	} else {
		t.enqueued++
	}
	if r.EstimatedDeparture.After(t.last) {
		t.last = r.EstimatedDeparture
	}
}

// stored counts the jobs that are in the queue, whoever put them there.
func (t *tally) stored() int { return t.enqueued + t.duplicates }

func (t *tally) soFar() string {
	text := count(t.enqueued, "job") + " enqueued"
	if t.duplicates > 0 {
		text += ", " + count(t.duplicates, "duplicate") + " left alone"
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// verdict is how a file ends that was read to the end.
func (t *tally) verdict() error {
	if t.failed == 0 {
		return nil
	}
	return &failure{code: t.badEnd(), err: fmt.Errorf("%s failed: %s", count(t.failed, "line"), t.soFar())}
}

// badEnd is the exit code when something was wrong with the file.
func (t *tally) badEnd() int {
	if t.stored() == 0 {
		return exitInvalid
	}
	return exitSomeFailed
}

// fail reports a line that is not enqueued.
func (b *bulk) fail(err error) {
	b.tally.failed++
	b.say(err.Error())
}

func (b *bulk) warnUnknown(names []string) {
	if len(names) == 0 {
		return
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name) // whatever stands in the file, it must not steer the terminal
	}
	b.say("warning: fields that mean nothing here were ignored: " + strings.Join(quoted, ", "))
}

func (b *bulk) say(text string) {
	b.progress.clear()
	_, _ = fmt.Fprintln(b.term.err, "enqueue:", text)
}

// summary prints the counts for people; with --json the lines are the result.
func (b *bulk) summary() error {
	if b.json {
		return nil
	}
	t := &b.tally
	last := "-"
	if t.stored() > 0 {
		last = departure(t.last, b.now())
	}
	_, err := fmt.Fprintf(b.term.out, "enqueued        %d\nduplicates      %d\nfailed          %d\nlast departure  %s\n",
		t.enqueued, t.duplicates, t.failed, last)
	return err
}
