package throttle

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// A DeadLetter is a job that was given up.
type DeadLetter struct {
	Job      Job // only Key and ID are set if the stored job was damaged
	At       time.Time
	Attempts int
	Reason   string
}

// DeadLetters lists up to most dead letters of a key's shard, oldest first, those
// of key alone.
func (q *Queue) DeadLetters(ctx context.Context, key string, most int) ([]DeadLetter, error) {
	const page = 100
	shard := q.store.shard(key)
	var letters []DeadLetter
	for from := 0; len(letters) < most; from += page {
		call := q.store.scripts.Dead(shard, from, page)
		if err := q.store.run(ctx, call); err != nil {
			return nil, fmt.Errorf("list dead letters of key %q: %w", key, err)
		}
		stored := call.Letters()
		for _, l := range stored {
			if d := deadLetter(l); d.Job.Key == key && len(letters) < most {
				letters = append(letters, d)
			}
		}
		if len(stored) < page {
			break
		}
	}
	return letters, nil
}

func deadLetter(l script.Letter) DeadLetter {
	id, key, _ := strings.Cut(l.Ref, " ")
	attempts, reason, _ := strings.Cut(l.Why, " ")
	n, _ := strconv.Atoi(attempts)
	job, _ := decodeJob(key, id, l.Job) // a damaged job is listed by its address
	return DeadLetter{Job: job, At: time.UnixMicro(l.At), Attempts: n, Reason: reason}
}
