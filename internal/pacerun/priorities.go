package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
)

// priorities keeps a key busy with jobs of the highest priority, as many as leave, and
// sees when those of the lowest do.
func priorities(ctx context.Context, s *sheet, e *env) error {
	const (
		rate    = 50
		ageing  = 2 * time.Second
		backlog = 2 * time.Second // of urgent jobs, all along
		n       = 10              // of the lowest, one a second
	)
	r, err := newReceiver(nil)
	if err != nil {
		return err
	}
	defer r.close()
	sys, err := newSystem(ctx, e.client, throttle.Policy{Key: "busy", Limit: limit("50/s", 1), Ageing: ageing})
	if err != nil {
		return err
	}
	defer sys.close()
	if err := e.start(sys, e.url); err != nil {
		return err
	}
	urgent := 0
	flood := func(jobs int) error {
		var batch []throttle.Job
		for range jobs {
			urgent++
			job := call(r, "busy", fmt.Sprintf("urgent-%06d", urgent))
			job.Priority = throttle.MaxPriority
			batch = append(batch, job)
		}
		_, err := sys.queue.EnqueueMany(ctx, batch)
		return err
	}
	if err := flood(int(backlog.Seconds() * rate)); err != nil {
		return err
	}
	came := make(map[string]time.Time)
	started := time.Now()
	for time.Since(started) < 9*ageing+n*time.Second+10*time.Second {
		if len(came) < n && time.Since(started) > time.Duration(len(came))*time.Second {
			id := fmt.Sprintf("low-%02d", len(came))
			came[id] = time.Now()
			if _, err := sys.queue.Enqueue(ctx, call(r, "busy", id)); err != nil {
				return err
			}
		}
		// As many as have left, so that the backlog stays.
		if missing := int((time.Since(started)+backlog).Seconds()*rate) - urgent; missing > 0 {
			if err := flood(missing); err != nil {
				return err
			}
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	longest, left := time.Duration(0), 0
	for _, d := range sys.departures() {
		if at, ok := came[d.ID]; ok {
			left++
			longest = max(longest, d.At.Sub(at))
		}
	}
	s.atLeast("jobs of the lowest priority that left", float64(left), n)
	s.atMost("longest wait of one, s (nine times the ageing of 2 s, and the backlog)", longest.Seconds(), (9*ageing + backlog + time.Second).Seconds())
	return nil
}
