package throttle

// An Overflow is what becomes of a job that is enqueued when MaxWaiting jobs are there
// already.
type Overflow string

// Overflows of a policy.
const (
	// Refuse turns the new job away: Enqueue fails with a [*FullError].
	Refuse Overflow = "refuse"
	// DropOldest takes the new job and drops another for it: of those at the front of the
	// line, or delayed if none waits, that had no attempt and are not more urgent, the
	// oldest of the lowest priority. [Receipt] tells which. If there is none, the new job
	// is refused.
	DropOldest Overflow = "drop_oldest"
	// DropNewest drops the new job. Its [Receipt] says so; it is no error.
	DropNewest Overflow = "drop_newest"
)

// ParseOverflow reads the name of one. The error is an [*InvalidError] on "overflow".
func ParseOverflow(text string) (Overflow, error) {
	switch o := Overflow(text); o {
	case Refuse, DropOldest, DropNewest:
		return o, nil
	}
	return "", invalid("overflow", text, "%s, %s or %s", Refuse, DropOldest, DropNewest)
}

// validateWaiting checks how many jobs may wait, and what becomes of more.
func (p Policy) validateWaiting() error {
	if p.MaxWaiting < 0 || p.MaxWaiting > MaxWaitingBound {
		return invalid("max_waiting", p.MaxWaiting, "1 to %d, or 0 for no bound", int64(MaxWaitingBound))
	}
	if p.Overflow == "" {
		return nil
	}
	if _, err := ParseOverflow(string(p.Overflow)); err != nil {
		return err
	}
	if p.MaxWaiting == 0 {
		return invalid("overflow", string(p.Overflow), "none without max_waiting")
	}
	return nil
}
