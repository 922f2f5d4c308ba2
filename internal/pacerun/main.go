// Command pacerun measures what the README promises, at the receiver or where jobs
// depart: each scenario runs the real parts on private Redis servers and compares
// figures with bounds.
//
//	go run ./internal/pacerun                 # all scenarios, about an hour, half of it one that is verified
//	go run ./internal/pacerun -run 'one key'  # those whose names match
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"text/tabwriter"
	"time"
)

// A figure is one measured value and what it must be.
type figure struct {
	Scenario string  `json:"scenario"`
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Bound    string  `json:"bound"`
	OK       bool    `json:"ok"`
}

// sheet collects the figures of one scenario.
type sheet struct {
	scenario string
	figures  []figure
}

func (s *sheet) add(name string, value float64, bound string, ok bool) {
	s.figures = append(s.figures, figure{s.scenario, name, value, bound, ok})
}

func (s *sheet) atMost(name string, value, most float64) {
	s.add(name, value, fmt.Sprintf("<= %g", most), value <= most)
}

func (s *sheet) atLeast(name string, value, least float64) {
	s.add(name, value, fmt.Sprintf(">= %g", least), value >= least)
}

func (s *sheet) between(name string, value, low, high float64) {
	s.add(name, value, fmt.Sprintf("in [%g, %g]", low, high), value >= low && value <= high)
}

type scenario struct {
	name string
	run  func(context.Context, *sheet) error
}

var eventsFile string

func main() { os.Exit(run()) }

func run() int {
	pattern := flag.String("run", "", "run only scenarios whose names match this regular expression")
	asJSON := flag.Bool("json", false, "print the figures as JSON")
	rounds := flag.Int("count", 1, "run each scenario this many times")
	flag.StringVar(&eventsFile, "events", "", "NDJSON file of events for the file scenario (fields id, key, event, payload)")
	flag.Parse()
	match, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pacerun:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	figures, ok := runAll(ctx, match, *rounds)
	if built {
		if dir, err := binaries(); err == nil {
			_ = os.RemoveAll(dir)
		}
	}
	if *asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(figures)
	} else {
		writeTable(os.Stdout, figures)
	}
	if !ok {
		return 1
	}
	return 0
}

func runAll(ctx context.Context, match *regexp.Regexp, rounds int) (figures []figure, ok bool) {
	ok = true
	for _, sc := range scenarios {
		if !match.MatchString(sc.name) {
			continue
		}
		for range rounds {
			started := time.Now()
			fmt.Fprintf(os.Stderr, "%s ...", sc.name)
			s := &sheet{scenario: sc.name}
			if err := sc.run(ctx, s); err != nil {
				fmt.Fprintf(os.Stderr, " failed: %v\n", err)
				ok = false
			} else {
				fmt.Fprintf(os.Stderr, " %.0f s\n", time.Since(started).Seconds())
			}
			for _, f := range s.figures {
				ok = ok && f.OK
			}
			figures = append(figures, s.figures...)
			if ctx.Err() != nil {
				return figures, false
			}
		}
	}
	return figures, ok
}

func writeTable(w io.Writer, figures []figure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tfigure\tvalue\tbound\t")
	for _, f := range figures {
		verdict := ""
		if !f.OK {
			verdict = "BROKEN"
		}
		fmt.Fprintf(t, "%s\t%s\t%.5g\t%s\t%s\n", f.Scenario, f.Name, f.Value, f.Bound, verdict)
	}
	_ = t.Flush()
}
