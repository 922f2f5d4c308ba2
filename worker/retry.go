package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirq/weir/throttle"
)

// A RetryPolicy spaces the attempts of a job that keeps failing: exponential with
// full jitter (Brooker, "Exponential Backoff And Jitter", 2015), so that jobs that
// failed together do not come back together. The delay before attempt n+1 is
// uniform between 0 and min(Cap, Base×2ⁿ⁻¹); the job then leaves through its bucket
// like any other.
type RetryPolicy struct {
	Base        time.Duration // 0 means 1s
	Cap         time.Duration // 0 means 10m; at least Base
	MaxAttempts int           // for jobs that do not say; 0 means 10, or one more than there are Delays
	// Delays, if there are any, are those after the first attempt, the second and so on, in place of Base and
	// Cap; the last one is also that of all further attempts. Each is varied by a tenth, so that jobs that
	// failed together do not come back together.
	Delays []time.Duration
}

const maxDelay = 366 * 24 * time.Hour

// StandardDelays are those that the Standard Webhooks specification suggests: eight attempts over a day and a bit.
func StandardDelays() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
	}
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Base == 0 {
		p.Base = time.Second
	}
	if p.Cap == 0 {
		p.Cap = max(p.Base, 10*time.Minute)
	}
	if p.MaxAttempts == 0 && len(p.Delays) > 0 {
		p.MaxAttempts = len(p.Delays) + 1
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = 10
	}
	return p
}

func (p RetryPolicy) validate() error {
	var errs []error
	if p.Base < 0 {
		errs = append(errs, fmt.Errorf("retry base %v is not allowed: want a positive duration", p.Base))
	}
	if p.Cap < p.Base {
		errs = append(errs, fmt.Errorf("retry cap %v is not allowed: want at least the base of %v", p.Cap, p.Base))
	}
	for i, d := range p.Delays {
		if d < time.Millisecond || d > maxDelay {
			errs = append(errs, fmt.Errorf("retry delays[%d] %v is not allowed: want 1ms to %v", i, d, maxDelay))
		}
	}
	if p.MaxAttempts < 1 {
		errs = append(errs, fmt.Errorf("retry max attempts %d is not allowed: want at least 1", p.MaxAttempts))
	}
	return errors.Join(errs...)
}

// ceiling is the longest delay after the given attempt, counted from 1.
func (p RetryPolicy) ceiling(attempt int) time.Duration {
	d := p.Base
	for range attempt - 1 {
		if d >= p.Cap/2 {
			return p.Cap
		}
		d *= 2
	}
	return min(d, p.Cap)
}

func (p RetryPolicy) delay(attempt int) time.Duration {
	if n := len(p.Delays); n > 0 {
		d := p.Delays[min(max(attempt, 1), n)-1]
		return d - d/10 + rand.N(d/5+1)
	}
	return rand.N(p.ceiling(attempt))
}

func (p RetryPolicy) attempts(job throttle.Job) int {
	if job.MaxAttempts > 0 {
		return job.MaxAttempts
	}
	return p.MaxAttempts
}
