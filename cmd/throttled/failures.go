package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/httpjob"
)

// failuresKey is the key of calls that tell of jobs that were given up.
const failuresKey = "weir:failures"

// A failureNote is the body of such a call.
type failureNote struct {
	Key      string `json:"key"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Attempts int    `json:"attempts"`
	Reason   string `json:"reason"`
	At       string `json:"at"`
}

// onDead enqueues a call for each job that is given up, if there is somebody to tell.
func (d *daemon) onDead() func(ctx context.Context, job throttle.Job, attempt int, reason string) {
	url := d.settings.config.HTTP.FailureCallback
	if url == "" {
		return nil
	}
	return func(ctx context.Context, job throttle.Job, attempt int, reason string) {
		if job.Key == failuresKey {
			return
		}
		if err := d.tellOfFailure(ctx, url, job, attempt, reason); err != nil {
			d.logger.Error("the failure callback was not enqueued", "key", job.Key, "id", job.ID, "error", err)
		}
	}
}

func (d *daemon) tellOfFailure(ctx context.Context, url string, job throttle.Job, attempt int, reason string) error {
	body, err := json.Marshal(failureNote{job.Key, job.ID, job.Type, attempt, reason, stamp(time.Now())})
	if err != nil {
		return err
	}
	call, err := httpjob.Request{URL: url, Headers: map[string]string{"Content-Type": "application/json"}, Body: body}.Job(failuresKey)
	if err != nil {
		return err
	}
	// One that is told again is the same, as long as the first has not ended.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q", attempt, job.Key, job.ID))
	call.ID = hex.EncodeToString(sum[:16])
	_, err = d.queue.Enqueue(ctx, call)
	return err
}
