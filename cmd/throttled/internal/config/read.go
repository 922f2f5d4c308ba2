package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"
)

// MaxFileSize is the longest file, in bytes.
const MaxFileSize = 1 << 20

// Load reads a file. What is wrong with its content is an [*Error].
func Load(name string) (Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return Config{}, fmt.Errorf("config file: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err != nil {
		return Config{}, fmt.Errorf("config file: %w", err)
	}
	return Read(name, data)
}

// Read takes the content of a file; name is for errors.
func Read(name string, data []byte) (Config, error) {
	r := &reader{file: name, config: Default(), places: make(map[string]Place)}
	r.read(data)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return Config{}, &Error{File: name, Problems: r.problems}
	}
	return r.config, nil
}

// reader fills in a Config and collects what is wrong.
type reader struct {
	file     string
	config   Config
	places   map[string]Place // of the fields that were read, by path
	problems []Problem
}

func (r *reader) read(data []byte) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin UTF-8 with it
	if len(data) > MaxFileSize {
		r.wrong(Place{1, 1}, "the file is too long: want at most %d bytes", MaxFileSize)
		return
	}
	if at, ok := firstInvalid(data); ok {
		r.wrong(at, "the file is not valid UTF-8 here")
		return
	}
	root, wrong := parse(data)
	if wrong != nil {
		r.problems = append(r.problems, *wrong)
		return
	}
	if root != nil {
		r.section("", root)
		r.compare()
	}
}

// wrong notes a problem. Its text says what is allowed.
func (r *reader) wrong(at Place, format string, args ...any) {
	r.problems = append(r.problems, Problem{Place: at, Text: fmt.Sprintf(format, args...)})
}

// compare checks fields against each other, once all are read.
func (r *reader) compare() {
	const path = "worker.retry.cap"
	retry := &r.config.Worker.Retry
	at, given := r.places[path]
	switch {
	case !given:
		retry.Cap = max(retry.Base, retry.Cap)
	case retry.Cap < retry.Base:
		r.wrong(at, path+" %s is not allowed: want at least worker.retry.base, %s", short(retry.Cap), short(retry.Base))
	}
}

// firstInvalid finds the first byte that is not UTF-8.
func firstInvalid(data []byte) (at Place, found bool) {
	at = Place{1, 1}
	for len(data) > 0 {
		char, size := utf8.DecodeRune(data)
		switch {
		case char == utf8.RuneError && size == 1:
			return at, true
		case char == '\n':
			at = Place{at.Line + 1, 1}
		default:
			at.Column++
		}
		data = data[size:]
	}
	return Place{}, false
}
