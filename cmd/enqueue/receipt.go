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
	State              string `json:"state"`
	Position           int64  `json:"position"`
	EstimatedDeparture string `json:"estimated_departure,omitempty"`
	Expires            string `json:"expires,omitempty"`
	ExpiresFirst       bool   `json:"expires_first,omitempty"` // before it leaves, as estimated
	Duplicate          bool   `json:"duplicate"`
	Replaced           bool   `json:"replaced"`
	Displaced          string `json:"displaced,omitempty"` // id of the job that made room
	Dropped            bool   `json:"dropped"`
	Reason             string `json:"reason,omitempty"` // of a refusal
	Line               int    `json:"line,omitempty"`
}

// stateRefused is that of a job that was not taken.
const stateRefused = "refused"

// writeJSON prints a receipt on a line. line is the job's in its file, 0 for a
// job from flags.
func writeJSON(w io.Writer, r throttle.Receipt, line int) error {
	return encode(w, printed{
		ID: r.ID, Key: r.Key, State: r.State,
		Position: r.Position, EstimatedDeparture: stamp(r.EstimatedDeparture),
		Expires: stamp(r.Expires), ExpiresFirst: r.ExpiresFirst,
		Duplicate: r.Duplicate, Replaced: r.Replaced, Displaced: r.Displaced, Dropped: r.State == throttle.Dropped, Line: line,
	})
}

// writeRefused prints a job that was refused on a line.
func writeRefused(w io.Writer, job throttle.Job, reason error, line int) error {
	return encode(w, printed{ID: job.ID, Key: job.Key, State: stateRefused, Reason: reason.Error(), Line: line})
}

func encode(w io.Writer, p printed) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(p)
}

// writeText prints a receipt for people. held is why nobody has the job leave, if so.
func writeText(w io.Writer, r throttle.Receipt, now time.Time, held string) error {
	text := fmt.Sprintf("id         %s\nstate      %s\n", r.ID, r.State)
	if r.Position > 0 {
		text += fmt.Sprintf("position   %d\n", r.Position)
	}
	past := r.ExpiresFirst && !r.Expires.After(now)
	switch {
	case past:
		text += "departure  none: it expires at once\n"
	case leaves(r.State):
		text += fmt.Sprintf("departure  %s\n", departure(r.EstimatedDeparture, now))
	}
	switch {
	case past:
		text += fmt.Sprintf("expires    %s, which is past\n", stamp(r.Expires))
	case r.ExpiresFirst:
		text += fmt.Sprintf("expires    %s, before its departure\n", ahead(r.Expires, now))
	case !r.Expires.IsZero():
		text += fmt.Sprintf("expires    %s, unless it leaves before\n", ahead(r.Expires, now))
	}
	if held != "" {
		text += fmt.Sprintf("held       %s\n", held)
	}
	switch {
	case r.Replaced:
		text += "replaced   yes: it took the place of the job that waited, and its id\n"
	case r.Duplicate:
		text += "duplicate  yes: the job that was there is as it was\n"
	case r.State == throttle.Dropped:
		text += "dropped    yes: as many jobs wait under its key as may\n"
	}
	if r.Displaced != "" {
		text += fmt.Sprintf("displaced  %s: dropped to make room\n", r.Displaced)
	}
	_, err := io.WriteString(w, text)
	return err
}

// leaves tells whether a job of this state has a departure to come, or has it now.
func leaves(state string) bool {
	switch state {
	case throttle.Dropped, throttle.Done, throttle.Dead:
		return false
	}
	return true
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
		return "not known: only an event can tell, such as the end of a pause"
	}
	return ahead(at, now)
}

// ahead is a time and how far ahead it is.
func ahead(at, now time.Time) string {
	in := at.Sub(now).Round(time.Millisecond)
	if in <= 0 {
		return stamp(at) + " (now)"
	}
	if in >= time.Second {
		in = in.Round(100 * time.Millisecond)
	}
	return fmt.Sprintf("%s (in %v)", stamp(at), in)
}
