package throttletest

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Reports are the reports of one run, sorted by key.
type Reports []Report

// Key finds the report of a key.
func (rs Reports) Key(key string) (r Report, found bool) {
	for _, r := range rs {
		if r.Key == key {
			return r, true
		}
	}
	return Report{}, false
}

// JainIndex is Jain's fairness index over the ratios of all keys: 1 when every
// key got the same share of its own rate, 1/n when one of n keys got all. It is 0
// where no key got anything.
func (rs Reports) JainIndex() float64 {
	var sum, squares float64
	for _, r := range rs {
		sum += r.Ratio
		squares += r.Ratio * r.Ratio
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(rs)) * squares)
}

// WriteTable writes the reports as an aligned table for people, and the Jain
// index below it when there are several keys. IDs that could not be checked show
// as a dash.
func (rs Reports) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "key\tlimit\tcount\tcost\tachieved/s\tratio\texcess\tgap p50\tgap p99\tgap max\tlost\tduplicated\tunknown\tout of order")
	for _, r := range rs {
		checked := func(n int) string {
			if !r.IDsChecked {
				return "-"
			}
			return strconv.Itoa(n)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.2f\t%.4f\t%.2f\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			label(r.Key), r.Limit, r.Count, r.Cost, r.Achieved, r.Ratio, r.Excess,
			millis(r.GapP50), millis(r.GapP99), millis(r.GapMax),
			checked(len(r.Lost)), len(r.Duplicated), checked(len(r.Unknown)), checked(r.OutOfOrder))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write pace table: %w", err)
	}
	if len(rs) < 2 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "Jain index %.4f over %d keys\n", rs.JainIndex(), len(rs)); err != nil {
		return fmt.Errorf("write pace table: %w", err)
	}
	return nil
}

// String is the table.
func (rs Reports) String() string {
	var b strings.Builder
	_ = rs.WriteTable(&b) // a Builder does not fail
	return b.String()
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
}

// label makes any key fit for a cell: quoted where it holds what a terminal
// would act on, and cut where it is long.
func label(key string) string {
	const widest = 40
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
