package config

import (
	"fmt"
	"strconv"
	"strings"
)

// A Place is a line and a column of a file, both counted from 1.
type Place struct{ Line, Column int }

// A Problem is one thing that is wrong with a file.
type Problem struct {
	Place
	Text string
}

// An Error is all that is wrong with a file, in the order of the file.
type Error struct {
	File     string
	Problems []Problem
}

func (e *Error) Error() string { return strings.Join(e.Lines(), "\n") }

// Lines are the problems, each with its place: file:line:column and the text.
func (e *Error) Lines() []string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = fmt.Sprintf("%s: %s", where(e.File, p.Place), p.Text)
	}
	return lines
}

func where(file string, p Place) string { return fmt.Sprintf("%s:%d:%d", file, p.Line, p.Column) }

// clip shortens a value that an error shows.
func clip(value string) string {
	const most = 80
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return value
}

func quote(value string) string { return strconv.Quote(clip(value)) }
