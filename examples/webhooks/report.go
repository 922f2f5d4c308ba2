package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// write prints the figures, as a table or as JSON.
func (v *verdict) write(w io.Writer, plot string, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(struct {
			*verdict
			Plot string `json:"plot"`
		}{v, plot}); err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
		return nil
	}
	fmt.Fprintln(w)
	if err := v.table(w); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	fmt.Fprintf(w, "\n%d events in %d attempts over %.1f s. Rates and gap errors are those while jobs were waiting,\n"+
		"retries included; excess is the most above burst + rate × time in any window of the run:\n"+
		"up to %v job is jitter on the way to the receiver, and allowed.\n"+
		"Plot of the arrivals: %s\n", v.Events, v.Attempts, v.Seconds, bounds.MaxExcess, plot)
	if len(v.Broken) == 0 {
		fmt.Fprintln(w, "All bounds kept.")
	}
	return nil
}

func (v *verdict) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "key\tlimit\tjobs\tattempts\twanted/s\tachieved/s\tratio\texcess\tgap p50\tgap p99\tlost\tduplicated\tdamaged\t")
	for _, f := range v.Keys {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%.4f\t%.2f\t%.2fms\t%.2fms\t%d\t%d\t%d\t\n",
			label(f.Key), f.Limit, f.Jobs, f.Attempts, f.Configured, f.Achieved, f.Ratio, f.Excess,
			f.GapP50, f.GapP99, f.Lost, f.Duplicated, f.Damaged)
	}
	return t.Flush()
}
