package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// lostWorkers kills workers again and again: the places of those that were lost come
// back with their leases, and never sooner.
func lostWorkers(ctx context.Context, s *sheet) error {
	const (
		key      = "held"
		inFlight = 10
		takes    = 300 * time.Millisecond
		rounds   = 20
		every    = 4 * time.Second
		back     = lease + time.Second // until the places of a lost worker are free
	)
	rd, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = rd.Close() }()
	r, err := newReceiver(taking(takes))
	if err != nil {
		return err
	}
	defer r.close()
	sys, err := newSystem(ctx, rd.Client(), throttle.Policy{Key: key, Limit: limit("200/s", 1), MaxInFlight: inFlight})
	if err != nil {
		return err
	}
	crew, err := startCrew(rd, 2, 1)
	defer crew.stop()
	if err != nil {
		return err
	}
	total := 0
	// backlog fills the line up to n jobs.
	backlog := func(n int) error {
		info, err := sys.queue.Key(ctx, key)
		if err != nil {
			return err
		}
		more := max(0, n-int(info.Waiting))
		jobs, _ := calls(r, key, total+more)
		_, err = sys.queue.EnqueueMany(ctx, jobs[total:])
		total += more
		return err
	}
	var kills []time.Time
	kill := func(n int) error {
		kills = append(kills, time.Now())
		w := crew.workers[n%len(crew.workers)]
		w.kill()
		return w.start()
	}
	highest, full := 0, inFlight
	for n := range rounds - 1 {
		if err := backlog(200); err != nil {
			return err
		}
		if err := rest(ctx, back); err != nil {
			return err
		}
		highest = max(highest, r.openAtOnce(key))
		if err := rest(ctx, every-back); err != nil {
			return err
		}
		refilled := r.openAtOnce(key)
		highest, full = max(highest, refilled), min(full, refilled)
		if err := kill(n); err != nil {
			return err
		}
	}
	// The last kill takes the end of the line, so that nothing hides what it leaves.
	stand := func(done func(throttle.KeyInfo) bool) func() bool {
		return func() bool {
			info, err := sys.queue.Key(ctx, key)
			return err == nil && done(info)
		}
	}
	if err := until(ctx, time.Minute, stand(func(k throttle.KeyInfo) bool { return k.Waiting == 0 })); err != nil {
		return err
	}
	if err := kill(rounds - 1); err != nil {
		return err
	}
	last := kills[len(kills)-1]
	if err := until(ctx, time.Minute, stand(func(k throttle.KeyInfo) bool {
		return k.Waiting+k.Delayed+k.InFlight == 0
	})); err != nil {
		return fmt.Errorf("jobs in flight after the last kill: %w", err)
	}
	free := time.Since(last)
	repairs, err := sys.queue.Repair(ctx, key)
	if err != nil {
		return err
	}
	dead, err := sys.queue.Jobs(ctx, key, throttle.Dead, throttle.Page{})
	if err != nil {
		return err
	}
	twice, unexplained := again(r.events(), kills, takes+50*time.Millisecond)
	s.add("kills", float64(len(kills)), "", true)
	s.atMost("open at once", float64(max(highest, r.openAtOnce(key))), inFlight)
	s.atLeast("open at once, lease + 1 s after a kill", float64(full), inFlight)
	s.atMost("none in flight after the last kill, s", free.Seconds(), back.Seconds())
	s.atMost("repairs needed", float64(repairs), 0)
	s.add("jobs", float64(total), "", true)
	s.atMost("lost or dead", float64(total-r.served()+len(dead.Jobs)), 0)
	s.add("arrived again", float64(twice), "", true)
	s.atMost("arrived again, not in flight at a kill", float64(unexplained), 0)
	return nil
}
