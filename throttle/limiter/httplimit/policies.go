package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/weirq/weir/throttle/limiter"
)

// policies are the rules of a limiter as HTTP has them.
type policies struct {
	names []string // one for each rule
	field string   // RateLimit-Policy
}

func newPolicies(l *limiter.Limiter) (policies, error) {
	rules := l.Rules()
	p := policies{names: make([]string, len(rules))}
	var list httpsfv.List
	for i, r := range rules {
		p.names[i] = l.Name()
		if len(rules) > 1 {
			// A colon is in no limiter's name.
			p.names[i] += ":" + strconv.Itoa(i+1)
		}
		quota, window := quota(r)
		item := httpsfv.NewItem(p.names[i])
		item.Params.Add("q", quota)
		item.Params.Add("w", window)
		if !r.Algorithm().Windowed() {
			item.Params.Add("weir-burst", r.Limit().Burst)
		}
		list = append(list, item)
	}
	var err error
	p.field, err = httpsfv.Marshal(list)
	return p, err
}

// quota is the limit in whole seconds: the period rounded up, and what comes back in that time
// rounded down.
func quota(r limiter.Rule) (units, seconds int64) {
	limit := r.Limit()
	seconds = wholeSeconds(limit.Period)
	longer := time.Duration(seconds)*time.Second - limit.Period // under 1s, so the product fits
	return limit.Rate + limit.Rate*longer.Microseconds()/limit.Period.Microseconds(), seconds
}

// set sets the fields of an answer that was decided at now. What counts from the answer on does so
// after the delay.
func (p policies) set(h http.Header, now time.Time, r limiter.Result) {
	h.Set("X-RateLimit-Limit", strconv.FormatInt(r.Limit, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(r.Remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(epoch(now.Add(r.ResetAfter)), 10))

	rules := r.Rules
	if len(rules) == 0 {
		rules = []limiter.RuleResult{{Limit: r.Limit, Remaining: r.Remaining, ResetAfter: r.ResetAfter}}
	}
	var list httpsfv.List
	for i, rule := range rules {
		window := wholeSeconds(max(0, rule.ResetAfter-r.Delay))
		if !r.Allowed {
			// By the draft nobody is sent back before the end of a window.
			window = min(window, retryAfter(r))
		}
		item := httpsfv.NewItem(p.names[i])
		item.Params.Add("r", rule.Remaining)
		item.Params.Add("t", window)
		list = append(list, item)
	}
	h.Add("RateLimit-Policy", p.field)
	if field, err := httpsfv.Marshal(list); err == nil { // it has none for a name and numbers of a limiter
		h.Add("RateLimit", field)
	}
}

// retryAfter is the wait of a denial, at least a second.
func retryAfter(r limiter.Result) int64 { return max(1, wholeSeconds(r.RetryAfter)) }

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// epoch is seconds since 1970, rounded up.
func epoch(t time.Time) int64 {
	s := t.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return s
}

// violated are the names of the rules that leave less than the cost.
func (p policies) violated(r limiter.Result, cost int64) []string {
	if len(p.names) == 1 {
		return p.names
	}
	var names []string
	for i, rule := range r.Rules {
		if rule.Remaining < cost {
			names = append(names, p.names[i])
		}
	}
	return names
}
