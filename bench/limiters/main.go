// Limiters measures package limiter beside its peers: on one private redis-server, in one process, in
// turns, so that only the ratios count. It exits with 1 if a bound is broken.
//
//	cd bench && go run ./limiters [-rounds 5] [-time 1s] [-json]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/throttletest"
)

var errBound = errors.New("bounds are broken")

// A figure is one line of the table.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Bound string  `json:"bound,omitempty"`
	OK    bool    `json:"ok"`
}

type table struct{ figures []figure }

func (t *table) add(name string, value float64) {
	t.figures = append(t.figures, figure{Name: name, Value: value, OK: true})
}

func (t *table) atLeast(name string, value, bound float64) {
	t.figures = append(t.figures, figure{name, value, fmt.Sprintf(">= %g", bound), value >= bound})
}

func (t *table) atMost(name string, value, bound float64) {
	t.figures = append(t.figures, figure{name, value, fmt.Sprintf("<= %g", bound), value <= bound})
}

func main() {
	rounds := flag.Int("rounds", 5, "rounds of which the median counts")
	span := flag.Duration("time", time.Second, "length of one measurement")
	asJSON := flag.Bool("json", false, "print JSON")
	flag.Parse()
	if err := run(*rounds, *span, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "limiters:", err)
		os.Exit(1)
	}
}

func run(rounds int, span time.Duration, asJSON bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		return err
	}
	defer server.Close()
	var t table
	for _, step := range []func(context.Context, redis.UniversalClient, *table) error{
		func(ctx context.Context, c redis.UniversalClient, t *table) error {
			return decisions(ctx, c, t, rounds, span)
		},
		memory,
		func(_ context.Context, _ redis.UniversalClient, t *table) error { return local(t, rounds) },
	} {
		if err := step(ctx, server.Client(), &t); err != nil {
			return err
		}
	}
	return t.print(asJSON)
}

func (t *table) print(asJSON bool) error {
	if asJSON {
		if err := json.NewEncoder(os.Stdout).Encode(t.figures); err != nil {
			return err
		}
	} else {
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "figure\tvalue\tbound\t")
		for _, f := range t.figures {
			mark := ""
			if !f.OK {
				mark = "broken"
			}
			fmt.Fprintf(w, "%s\t%.5g\t%s\t%s\n", f.Name, f.Value, f.Bound, mark)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(t.figures, func(f figure) bool { return !f.OK }) {
		return errBound
	}
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
