package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how much longer than their limits ask for the deliveries may take.
const patience = 10 * time.Second

// watch shows how far the deliveries are, until all have been accepted, it took
// too long, ctx ends, or the parts that deliver have stopped.
func watch(ctx, running context.Context, destinations []destination, receiver *receiver, out output) error {
	var expected time.Duration
	for _, d := range destinations {
		expected = max(expected, d.duration())
	}
	shown := newProgress(out.notes, destinations, receiver)
	fmt.Fprintf(out.notes, "%s, %d keys: about %v.\n", receiver.tally(), len(destinations), expected.Round(time.Second/10))
	ticker := time.NewTicker(shown.every())
	defer ticker.Stop()
	late := time.NewTimer(expected + patience)
	defer late.Stop()
	defer shown.show() // the end as well
	for {
		select {
		case <-receiver.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-running.Done():
			return running.Err()
		case <-late.C:
			return nil // what is lost is told by the verdict
		case <-ticker.C:
			shown.show()
		}
	}
}

// A progress shows how many events of each key were delivered.
type progress interface {
	show()
	every() time.Duration // how often to
}

func newProgress(w io.Writer, destinations []destination, receiver *receiver) progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return newBars(w, destinations, receiver)
	}
	return &lines{w: w, destinations: destinations, receiver: receiver, start: time.Now()}
}

// lines are for logs: one at a time.
type lines struct {
	w            io.Writer
	destinations []destination
	receiver     *receiver
	start        time.Time
}

func (l *lines) every() time.Duration { return 5 * time.Second }

func (l *lines) show() {
	var b strings.Builder
	for _, d := range l.destinations[:min(maxRows, len(l.destinations))] {
		fmt.Fprintf(&b, "  %s %d/%d", label(d.key), l.receiver.delivered(d.key), len(d.events))
	}
	fmt.Fprintf(l.w, "%5.1fs  %s delivered %s\n", time.Since(l.start).Seconds(), l.receiver.tally(), b.String())
}

// maxRows bounds the keys shown while it goes on. The table at the end has all.
const maxRows = 12

// bars are for a terminal: one for each key, drawn over again.
type bars struct {
	w        io.Writer
	receiver *receiver
	rows     []bar
	drawn    bool
}

type bar struct {
	key string
	*progressbar.ProgressBar
}

func newBars(w io.Writer, destinations []destination, receiver *receiver) *bars {
	b := &bars{w: w, receiver: receiver}
	width := 0
	shown := destinations[:min(maxRows, len(destinations))]
	for _, d := range shown {
		width = max(width, len([]rune(label(d.key))))
	}
	for _, d := range shown {
		b.rows = append(b.rows, bar{d.key, progressbar.NewOptions(len(d.events),
			progressbar.OptionSetWriter(io.Discard), // it draws one line, and here are several
			progressbar.OptionSetDescription(fmt.Sprintf("%-*s %-15s", width, label(d.key), d.limit)),
			progressbar.OptionSetWidth(20),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetSpinnerChangeInterval(0), // no goroutine of its own
			progressbar.OptionUseANSICodes(true),
		)})
	}
	return b
}

func (b *bars) every() time.Duration { return 100 * time.Millisecond }

func (b *bars) show() {
	var text strings.Builder
	if b.drawn {
		fmt.Fprintf(&text, "\x1b[%dA", len(b.rows)) // up to the first of them
	}
	b.drawn = true
	for _, row := range b.rows {
		_ = row.Set(b.receiver.delivered(row.key))
		fmt.Fprintf(&text, "\r\x1b[K%s\n", strings.Trim(row.String(), "\r\n"))
	}
	_, _ = io.WriteString(b.w, text.String())
}

// label makes any key fit for a line of text: quoted where it holds what a terminal
// would act on, and cut where it is long.
func label(key string) string {
	const widest = 24
	for _, r := range key {
		if !strconv.IsPrint(r) {
			key = strconv.Quote(key)
			break
		}
	}
	if runes := []rune(key); len(runes) > widest {
		return string(runes[:widest-1]) + "…"
	}
	return key
}
