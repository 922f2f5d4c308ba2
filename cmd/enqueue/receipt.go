package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/weirq/weir/throttle"
)

// printed is a receipt as --json prints it.
type printed struct {
	ID                 string `json:"id"`
	Key                string `json:"key"`
	Position           int64  `json:"position"`
	EstimatedDeparture string `json:"estimated_departure,omitempty"`
	Duplicate          bool   `json:"duplicate"`
	Line               int    `json:"line,omitempty"`
}

// writeJSON prints a receipt on a line. line is the job's in its file, 0 for a
// job from flags.
func writeJSON(w io.Writer, r throttle.Receipt, line int) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(printed{
		ID: r.ID, Key: r.Key, Position: r.Position, EstimatedDeparture: stamp(r.EstimatedDeparture), Duplicate: r.Duplicate, Line: line,
	})
}

// writeText prints a receipt for people.
func writeText(w io.Writer, r throttle.Receipt, now time.Time) error {
	note := ""
	if r.Position == 0 {
		note = " (delayed, or already on its way)"
	}
	text := fmt.Sprintf("id         %s\nposition   %d%s\ndeparture  %s\n", r.ID, r.Position, note, departure(r.EstimatedDeparture, now))
	if r.Duplicate {
		text += "duplicate  yes: the job with this id that was there is as it was\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// stamp is RFC 3339 with milliseconds, in UTC; empty for no time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func departure(at, now time.Time) string {
	if at.IsZero() {
		return "not known: the key or a parent is paused"
	}
	in := at.Sub(now).Round(time.Millisecond)
	if in <= 0 {
		return stamp(at) + " (now)"
	}
	if in >= time.Second {
		in = in.Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("%s (in %v)", stamp(at), in)
}
