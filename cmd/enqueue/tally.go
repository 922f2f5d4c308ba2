package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

// A tally counts what became of the lines.
type tally struct {
	enqueued, duplicates, replaced int
	displaced                      int // jobs that made room
	late                           int // jobs that expire before they leave
	dropped, failed                int
	last                           time.Time // the latest estimated departure
}

func (t *tally) add(r throttle.Receipt) {
	switch {
	case r.State == throttle.Dropped:
		t.dropped++
	case r.Replaced:
		t.replaced++
	case r.Duplicate:
		t.duplicates++
	default:
		t.enqueued++
	}
	if r.Displaced != "" {
		t.displaced++
	}
	if r.ExpiresFirst {
		t.late++
	}
	if r.EstimatedDeparture.After(t.last) {
		t.last = r.EstimatedDeparture
	}
}

// stored counts the jobs that are in the queue, whoever put them there.
func (t *tally) stored() int { return t.enqueued + t.duplicates + t.replaced }

func (t *tally) soFar() string {
	text := count(t.enqueued, "job") + " enqueued"
	if t.duplicates > 0 {
		text += ", " + count(t.duplicates, "duplicate") + " left alone"
	}
	for _, more := range t.rare() {
		text += fmt.Sprintf(", %d %s", more.n, more.what)
	}
	return text
}

// A share is how many jobs had something happen to them.
type share struct {
	what string
	n    int
}

// rare is what happens to jobs only where their key or they ask for it, if it did.
func (t *tally) rare() (list []share) {
	for _, s := range []share{{"replaced", t.replaced}, {"displaced", t.displaced}, {"dropped", t.dropped}, {"expiring first", t.late}} {
		if s.n > 0 {
			list = append(list, s)
		}
	}
	return list
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

// warn tells what may be wrong with a file of which every line was read. names are those
// of the fields that mean nothing here.
func (b *bulk) warn(names []string) {
	if b.lines == 0 {
		b.say("warning: there are no lines with jobs in it")
	}
	if len(names) == 0 {
		return
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name) // whatever stands in the file, it must not steer the terminal
	}
	b.say(fmt.Sprintf("warning: fields that mean nothing here were ignored, the first in line %d: %s", b.strange, strings.Join(quoted, ", ")))
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
	text := fmt.Sprintf("enqueued        %d\nduplicates      %d\n", t.enqueued, t.duplicates)
	for _, more := range t.rare() {
		text += fmt.Sprintf("%-15s %d\n", more.what, more.n)
	}
	_, err := fmt.Fprintf(b.term.out, "%sfailed          %d\nlast departure  %s\n", text, t.failed, last)
	return err
}
