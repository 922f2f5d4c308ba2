package throttletest

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// excessSlack, in cost units, forgives the rounding of slots to whole
// nanoseconds and of floats, and nothing that a clock could show.
const excessSlack = 1e-6

// Bounds are what a [Report] must keep. The zero value asks for the limit to the
// letter, nothing lost, unknown or duplicated, at any speed.
type Bounds struct {
	MinRatio        float64       // 0 leaves it unchecked
	MaxRatio        float64       // 0 leaves it unchecked
	MaxExcess       float64       // cost units; always checked, math.Inf(1) lets all pass
	MaxGapP99       time.Duration // 0 leaves it unchecked
	AllowDuplicates bool
	Ordered         bool // every job first seen in its place in line; needs expected ids
}

// Check returns an error that names every broken bound with value and bound, or
// nil. What was lost and what is unknown is always an error.
func (r Report) Check(b Bounds) error {
	var broken []string
	breaks := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }

	if b.MinRatio > 0 && r.Ratio < b.MinRatio {
		breaks("ratio %.6g is below min_ratio %g", r.Ratio, b.MinRatio)
	}
	if b.MaxRatio > 0 && r.Ratio > b.MaxRatio {
		breaks("ratio %.6g is above max_ratio %g", r.Ratio, b.MaxRatio)
	}
	if r.Excess > b.MaxExcess+excessSlack {
		w := r.ExcessWindow
		breaks("excess %.6g is above max_excess %g (cost %d from %v to %v after the first)",
			r.Excess, b.MaxExcess, w.Cost, w.From.Sub(r.From), w.To.Sub(r.From))
	}
	if b.MaxGapP99 > 0 && r.GapP99 > b.MaxGapP99 {
		breaks("gap_p99 %v is above max_gap_p99 %v", r.GapP99, b.MaxGapP99)
	}
	if len(r.Lost) > 0 {
		breaks("lost %s, allowed 0", some(r.Lost))
	}
	if len(r.Unknown) > 0 {
		breaks("unknown %s, allowed 0", some(r.Unknown))
	}
	if len(r.Duplicated) > 0 && !b.AllowDuplicates {
		breaks("duplicated %s, allowed 0", some(r.Duplicated))
	}
	switch {
	case b.Ordered && !r.IDsChecked:
		breaks("order is unknown: give the expected ids to have it checked")
	case b.Ordered && r.OutOfOrder > 0:
		breaks("out_of_order %d, allowed 0", r.OutOfOrder)
	}

	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("key %q, %s: %s", r.Key, r.Limit, strings.Join(broken, "; "))
}

// Check joins what [Report.Check] says of every key.
func (rs Reports) Check(b Bounds) error {
	var errs []error
	for _, r := range rs {
		errs = append(errs, r.Check(b))
	}
	return errors.Join(errs...)
}

// some counts ids and shows the first few.
func some(ids []string) string {
	const shown = 5
	more := ""
	if len(ids) > shown {
		more = fmt.Sprintf(" and %d more", len(ids)-shown)
	}
	return fmt.Sprintf("%d (%s%s)", len(ids), strings.Join(ids[:min(shown, len(ids))], ", "), more)
}
