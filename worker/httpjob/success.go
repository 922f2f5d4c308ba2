package httpjob

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	leastStatus = 200 // what is below is no final answer
	mostStatus  = 599

	allowedSuccess = `statuses from 200 to 599, such as "2xx", "304" or "200-299", or none for the default of "2xx"`
)

// succeeds tells whether a status is that of a call that is done.
func (r Request) succeeds(status int) bool {
	if len(r.Success) == 0 {
		return status >= 200 && status <= 299
	}
	for _, s := range r.statuses() {
		if low, high, ok := statusRange(s); ok && status >= low && status <= high {
			return true
		}
	}
	return false
}

// statuses are the entries of Success; one entry may be several, between commas.
func (r Request) statuses() []string {
	return strings.Split(strings.Join(r.Success, ","), ",")
}

func (r Request) validateSuccess() error {
	if len(r.Success) == 0 {
		return nil
	}
	for _, s := range r.statuses() {
		if _, _, ok := statusRange(s); !ok {
			return invalid("success", clip(s), allowedSuccess)
		}
	}
	return nil
}

// statusRange reads "2xx", "200" or "200-299".
func statusRange(s string) (low, high int, ok bool) {
	s = strings.TrimSpace(s)
	if class, isClass := strings.CutSuffix(s, "xx"); isClass {
		n, ok := status(class + "00")
		return n, n + 99, ok
	}
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	low, ok1 := status(first)
	high, ok2 := status(last)
	return low, high, ok1 && ok2 && low <= high
}

func status(s string) (n int, ok bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= leastStatus && n <= mostStatus && fmt.Sprint(n) == s
}
