package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// shown is a name or another text of somebody's as a terminal may show it: in quotes,
// with escapes, where a character in it could move the cursor, hide or pass for
// something else.
func shown(text string) string {
	plain := text != "" && utf8.ValidString(text) && text[0] != '"' && strings.TrimSpace(text) == text
	for _, char := range text {
		plain = plain && unicode.IsPrint(char)
	}
	if plain {
		return text
	}
	return strconv.Quote(text)
}

// legible is an error's text with escapes for what a terminal would not just show. Its
// lines stay lines.
func legible(text string) string {
	var out strings.Builder
	for _, char := range text {
		if char == '\n' || char == '\t' || unicode.IsPrint(char) {
			out.WriteRune(char)
			continue
		}
		out.WriteString(strings.Trim(strconv.QuoteRune(char), "'"))
	}
	return out.String()
}

// object prints a value as a line of JSON.
func (c *conn) object(v any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := c.out.Write(escaped(line.Bytes()))
	return err
}

// escaped writes what a terminal would not just show as JSON escapes. Such characters
// stand only in texts; encoding/json has seen to those below a space.
func escaped(line []byte) []byte {
	out := make([]byte, 0, len(line))
	for _, char := range string(line) {
		switch {
		case char == '\n' || unicode.IsPrint(char):
			out = utf8.AppendRune(out, char)
		case char > 0xffff:
			high, low := (char-0x10000)>>10+0xd800, (char-0x10000)&0x3ff+0xdc00
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, char)
		}
	}
	return out
}

// line prints a line for people.
func (c *conn) line(format string, args ...any) error {
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

// table prints rows in columns that line up. Cells must have been shown.
func (c *conn) table(rows [][]string) error {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if err := c.line("%s", strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// stamp is RFC 3339 with milliseconds, in UTC.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// brief writes 5m rather than 5m0s.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
