package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/weirq/weir/throttle"
)

// verified runs a key for half an hour that keeps its history, through changes of its
// limit, pauses, failures and a stall of the workers, and proves from the history that no
// window broke the policy in force.
func verified(ctx context.Context, s *sheet, e *env) error {
	const length = 30 * time.Minute
	r, err := newReceiver(func(arrival) int {
		if rand.IntN(20) == 0 {
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	if err != nil {
		return err
	}
	defer r.close()
	p := throttle.Policy{
		Key: "verified", Limit: limit("40/s", 20), History: throttle.MaxHistory,
		Quotas: []throttle.Quota{{Limit: 2000, Per: time.Minute, Window: throttle.Sliding}},
	}
	sys, err := newSystem(ctx, e.client, p)
	if err != nil {
		return err
	}
	defer sys.close()
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	started, sent := time.Now(), 0
	for minute := 0; time.Since(started) < length; minute++ {
		jobs, _ := calls(r, p.Key, 2500)
		for i := range jobs {
			jobs[i].ID = throttle.NewJobID()
		}
		sent += len(jobs)
		if _, err := sys.queue.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
		switch minute % 5 {
		case 1:
			p.Limit = limit("60/s", 5)
			err = sys.queue.SetPolicy(ctx, p)
		case 2:
			if err = sys.queue.Pause(ctx, p.Key); err == nil {
				err = rest(ctx, 10*time.Second)
			}
			if err == nil {
				err = sys.queue.Resume(ctx, p.Key)
			}
		case 3:
			p.Limit = limit("30/s", 50)
			err = sys.queue.SetPolicy(ctx, p)
		}
		if err != nil {
			return err
		}
		if err := rest(ctx, time.Duration(minute+1)*time.Minute-time.Since(started)); err != nil {
			return err
		}
	}
	h, err := sys.queue.History(ctx, p.Key)
	if err != nil {
		return err
	}
	v := h.Verify()
	for _, x := range v.Violations {
		fmt.Fprintf(os.Stderr, "%s from %v to %v: %g of %g, by %v\n", x.What, x.From, x.To, x.Cost, x.Allowed, x.Jobs)
	}
	s.atLeast("departures verified", float64(v.Departures), 50_000*length.Hours())
	s.atMost("windows that broke the policy in force", float64(len(v.Violations)), 0)
	s.add("used of the allowance", v.Used, "", true)
	s.atLeast("minutes", v.To.Sub(v.From).Minutes(), length.Minutes()-1)
	return nil
}
