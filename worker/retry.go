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
	MaxAttempts int           // for jobs that do not say; 0 means 10
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.Base == 0 {
		p.Base = time.Second
	}
	if p.Cap == 0 {
		p.Cap = max(p.Base, 10*time.Minute)
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
	return rand.N(p.ceiling(attempt))
}

func (p RetryPolicy) attempts(job throttle.Job) int {
	if job.MaxAttempts > 0 {
		return job.MaxAttempts
	}
	return p.MaxAttempts
}
