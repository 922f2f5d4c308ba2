package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func main() {
	ctx := context.Background()
	rd, err := throttletest.LaunchRedis(ctx, "")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	defer rd.Close()
	r, _ := newReceiver(nil)
	l, _ := throttle.ParseLimit("100/s", 1)
	s, err := newSystem(ctx, rd.Client(), throttle.Policy{Key: "a", Limit: l})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.start(); err != nil {
		fmt.Println(err)
		return
	}
	jobs, ids := calls(r, "a", 2000)
	rec, err := s.queue.EnqueueMany(ctx, jobs)
	fmt.Println(len(rec), err, rec[1999].Position, time.Until(rec[1999].EstimatedDeparture))
	start := time.Now()
	for r.distinct() < 2000 && time.Since(start) < 30*time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	rep, err := throttletest.Measure(map[string]throttle.Limit{"a": l}, r.events(), map[string][]string{"a": ids})
	fmt.Println(rep, err)
	s.close()
}
