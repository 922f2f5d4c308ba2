package throttle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// ErrNoJob is returned when there is no job of that key and id.
var ErrNoJob = errors.New("no such job")

// States of a job; [Done] and [Dead] are those of one that ended and is kept.
const (
	Waiting  = "waiting"  // in its bucket
	Delayed  = "delayed"  // until its not-before or its next attempt
	Released = "released" // on its way to a worker
	Running  = "running"  // in a worker's hands, its slot given
	Dropped  = "dropped"  // it was not taken: its key had no room
)

// JobInfo is what is known of a job.
type JobInfo struct {
	Receipt           // its State may be Dead or Done: then there is no position
	Job     Job       // as it was enqueued, less what only mattered then; Damaged if it cannot be read
	Damaged error     // why it cannot be read; nil if it can
	At      time.Time // end of its delay, its slot, or when it ended; zero while it waits
	// Enqueued is when its place in the line dates from; zero once it ended.
	Enqueued time.Time
	Attempts int    // begun so far
	Last     bool   // it was cancelled while it ran: there will be no other attempt
	Reason   string // why it is dead
	// History of its attempts, the latest twenty of those that failed, or of all once it
	// ended and is kept.
	History []Attempt
}

// An Attempt is how one try ended.
type Attempt struct {
	Number   int
	Departed time.Time // its slot
	Ended    time.Time // when Redis was told
	Outcome  string    // Retry, Dead, Done or "lost"
	Error    string
}

// Job looks up a job that has not ended, or ended and is kept. The error is [ErrNoJob]
// if there is none. All instants are by the clock of Redis.
func (q *Queue) Job(ctx context.Context, key, id string) (JobInfo, error) {
	if err := ValidateKey(key); err != nil {
		return JobInfo{}, err
	}
	if err := validateToken("id", id); err != nil {
		return JobInfo{}, err
	}
	var f script.Found
	err := q.store.seek(ctx, key, func(shard int, _ bool) *script.Call {
		return q.store.scripts.Find(shard, key, id)
	}, func(c *script.Call) (home int, found bool) {
		f = c.Found()
		return f.Home, f.OK
	})
	if err == nil && !f.OK {
		err = ErrNoJob
	}
	if err != nil {
		return JobInfo{}, fmt.Errorf("look up job %q of key %q: %w", id, key, err)
	}
	return jobInfo(key, id, f), nil
}

func jobInfo(key, id string, f script.Found) JobInfo {
	estimates := newEstimator(f.Now, f.ShardNow, f.Outlook)
	server := func(shard int64) time.Time {
		if shard == 0 {
			return time.Time{}
		}
		return time.UnixMicro(shard + f.Now - f.ShardNow)
	}
	info := JobInfo{
		Receipt: Receipt{Key: key, ID: id, State: f.State, Position: f.Position, Expires: server(f.Expires)},
		At:      server(f.At), Enqueued: server(f.Enqueued),
		Attempts: int(f.Attempts), Last: f.Last, Reason: f.Reason, History: readAttempts(f.Log),
	}
	info.EstimatedDeparture = estimates.estimate(f.State, f.Ahead, f.Jobs, f.Cost, f.At)
	info.ExpiresFirst = estimates.expiresFirst(info.Receipt)
	if f.Ended != 0 {
		info.At = server(f.Ended)
	}
	info.Job, info.Damaged = decodeJob(key, id, f.Job)
	info.Job.Cost, info.Job.Priority, info.Job.Pool = f.Cost, int(f.Priority), f.Pool
	return info
}

// readAttempts reads the lines that record.lua tells of.
func readAttempts(log string) (list []Attempt) {
	for line := range strings.SplitSeq(log, "\n") {
		parts := strings.SplitN(line, " ", 5)
		if len(parts) != 5 {
			continue
		}
		var n [3]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(parts[i], 10, 64)
		}
		list = append(list, Attempt{
			Number: int(n[0]), Departed: time.UnixMicro(n[1]), Ended: time.UnixMicro(n[2]), Outcome: parts[3], Error: parts[4],
		})
	}
	return list
}
