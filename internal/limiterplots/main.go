// Limiterplots draws the plots of docs/limiters.md: what each algorithm of package limiter lets pass of the
// same traffic.
//
//	go run ./internal/limiterplots [-dir docs/limiters] [-format svg] [-check]
//
// With -check it draws nothing, and exits with 1 if the plots in the directory are not those it would draw.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

func main() {
	dir := flag.String("dir", "docs/limiters", "directory of the plots")
	format := flag.String("format", "svg", "svg or png")
	check := flag.Bool("check", false, "compare with the plots in the directory, and write nothing there")
	flag.Parse()
	do := writeAll
	if *check {
		do = checkAll
	}
	if err := do(*dir, *format); err != nil {
		fmt.Fprintln(os.Stderr, "limiterplots:", err)
		os.Exit(1)
	}
}

// writeAll draws the plots into a directory.
func writeAll(dir, format string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, s := range subjects {
		o, err := observe(s)
		if err != nil {
			return fmt.Errorf("%v: %w", s.rule, err)
		}
		if err := draw(filepath.Join(dir, s.file+"."+format), o); err != nil {
			return fmt.Errorf("%v: %w", s.rule, err)
		}
	}
	return nil
}

// checkAll tells which plots in a directory are not current.
func checkAll(dir, format string) (err error) {
	fresh, err := os.MkdirTemp("", "limiterplots-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := writeAll(fresh, format); err != nil {
		return err
	}
	var stale []error
	for _, s := range subjects {
		name := s.file + "." + format
		want, err := os.ReadFile(filepath.Join(fresh, name))
		if err != nil {
			return err
		}
		have, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
			stale = append(stale, err)
		case !same(string(have), string(want)):
			stale = append(stale, fmt.Errorf("%s is not current: draw it with go run ./internal/limiterplots", filepath.Join(dir, name)))
		}
	}
	return errors.Join(stale...)
}

var number = regexp.MustCompile(`-?\d+(\.\d+)?`)

// same compares two plots. Their numbers may differ by what cannot be seen: not every processor rounds alike.
func same(a, b string) bool {
	const unseen = 0.01
	if number.ReplaceAllString(a, "0") != number.ReplaceAllString(b, "0") {
		return false
	}
	theirs := number.FindAllString(b, -1)
	for i, text := range number.FindAllString(a, -1) {
		x, _ := strconv.ParseFloat(text, 64) // digits
		y, _ := strconv.ParseFloat(theirs[i], 64)
		if math.Abs(x-y) > unseen {
			return false
		}
	}
	return true
}
