package throttle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// DeadLetters lists the jobs of all keys that were given up, oldest first. Those of one
// key are listed by Jobs, and one is read by Job.
func (q *Queue) DeadLetters(ctx context.Context, page Page) (JobPage, error) {
	page, err := page.withDefaults()
	if err != nil {
		return JobPage{}, err
	}
	return q.ended(ctx, "", Dead, page)
}

// ended lists jobs that ended, of a key or, if that is empty, of all.
func (q *Queue) ended(ctx context.Context, key, what string, page Page) (JobPage, error) {
	var after position
	if err := after.decode(page.Cursor); err != nil {
		return JobPage{}, err
	}
	shards := make([]int, 0, q.store.shards)
	for shard := range q.store.shards {
		shards = append(shards, shard)
	}
	if key != "" {
		var err error
		if shards, err = q.store.homes(ctx, key); err != nil {
			return JobPage{}, fmt.Errorf("list %s jobs of key %q: %w", what, key, err)
		}
	}
	out, err := q.merged(ctx, shards, key, what, after, page.Limit)
	if err != nil {
		return JobPage{}, fmt.Errorf("list %s jobs: %w", what, err)
	}
	return out, nil
}

// A letter is a job that ended, with where it stands among all of them.
type letter struct {
	job ListedJob
	at  position
}

func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(p.Score, o.Score), strings.Compare(p.Name, o.Name))
}

// merged reads a page from each shard and makes one of them.
func (q *Queue) merged(ctx context.Context, shards []int, key, what string, after position, limit int) (JobPage, error) {
	for {
		calls := make([]*script.Call, len(shards))
		for i, shard := range shards {
			calls[i] = q.store.scripts.Ended(shard, what, key, after.score(), after.Name, max(limit, revivePage))
		}
		if err := q.store.run(ctx, calls...); err != nil {
			return JobPage{}, err
		}
		var letters []letter
		more := false
		// Of those behind the end of a full page nothing is known.
		end := position{Score: 1<<63 - 1}
		for _, c := range calls {
			toServer, full, stored := c.Letters()
			more = more || full
			for _, l := range stored {
				letters = append(letters, letter{readLetter(key, l, toServer), position{l.At, l.Name}})
			}
			if n := len(stored); full {
				if last := (position{stored[n-1].At, stored[n-1].Name}); last.compare(end) < 0 {
					end = last
				}
			}
		}
		slices.SortFunc(letters, func(a, b letter) int { return a.at.compare(b.at) })
		var page JobPage
		begin := after
		for i, l := range letters {
			if l.at.compare(end) > 0 || len(page.Jobs) == limit {
				more = true
				break
			}
			if l.at.compare(begin) <= 0 {
				continue // it was on a page before
			}
			if l.job.State == what {
				page.Jobs = append(page.Jobs, l.job)
			}
			after = letters[i].at
		}
		if more && len(page.Jobs) == 0 && after != begin {
			continue
		}
		if more {
			page.Next = after.encode()
		}
		return page, nil
	}
}

// readLetter reads what is told of a job that ended, see ended.lua.
func readLetter(key string, l script.Letter, toServer int64) ListedJob {
	out := ListedJob{Key: key, ID: l.Name, At: time.UnixMicro(l.At + toServer)}
	if key == "" {
		out.ID, out.Key, _ = strings.Cut(l.Name, " ")
	}
	parts := strings.SplitN(l.Why, " ", 6)
	if len(parts) == 6 {
		out.State, out.Reason = parts[0], parts[5]
		out.Attempts, _ = strconv.Atoi(parts[1])
		out.Cost, _ = strconv.ParseInt(parts[2], 10, 64)
		out.Priority, _ = strconv.Atoi(parts[3])
	}
	return out
}

// ErrAlive is returned when a job should have ended and one with its id waits, is delayed,
// or is in flight.
var ErrAlive = errors.New("a job with this id has not ended")

// Replay puts a job that is dead, or done and kept, back into its bucket, under its id.
// It leaves through it like everything else, at the end of the line, its attempts counted
// anew; it has no TTL, deadline or name any more, and is taken whatever bounds say. The
// error is [ErrNoJob] if it is not kept, [ErrAlive], or a [*DrainingError].
func (q *Queue) Replay(ctx context.Context, key, id string) error {
	return q.revive(ctx, script.Replay, key, id)
}

// Discard throws a job away that is dead, or done and kept. The error is [ErrNoJob] if
// it is not kept, or [ErrAlive] if it has not even ended.
func (q *Queue) Discard(ctx context.Context, key, id string) error {
	return q.revive(ctx, script.Discard, key, id)
}

func (q *Queue) revive(ctx context.Context, what, key, id string) error {
	if err := ValidateKey(key); err != nil {
		return err
	}
	if err := validateToken("id", id); err != nil {
		return err
	}
	var outcome int
	var err error
	if what == script.Replay {
		err = q.hasEnded(ctx, key, id)
	}
	if err == nil {
		outcome, err = q.reviveIn(ctx, what, key, id)
	}
	switch {
	case err != nil:
	case outcome == script.NotRevived:
		if err = q.hasEnded(ctx, key, id); err == nil {
			err = ErrNoJob
		}
	case outcome == script.Alive:
		if err = q.hasEnded(ctx, key, id); err == nil { // since then
			err = ErrAlive
		}
	case outcome == script.Closed:
		err = &DrainingError{Keys: []string{key}}
	}
	if err == nil {
		err = q.store.run(ctx, q.store.scripts.Note(q.store.natural(key), q.who, what, key, id))
	}
	if err != nil {
		return fmt.Errorf("%s job %q of key %q: %w", what, id, key, err)
	}
	return nil
}

// hasEnded is an error if there is a job that has not.
func (q *Queue) hasEnded(ctx context.Context, key, id string) error {
	info, err := q.Job(ctx, key, id)
	switch {
	case errors.Is(err, ErrNoJob):
		return nil
	case err != nil:
		return err
	case info.State == Dead || info.State == Done:
		return nil
	}
	return fmt.Errorf("%w: it is %s, not dead", ErrAlive, info.State)
}

// reviveIn tries the shards in which a job may have ended.
func (q *Queue) reviveIn(ctx context.Context, what, key, id string) (outcome int, err error) {
	homes, err := q.store.homes(ctx, key)
	if err != nil {
		return 0, err
	}
	for _, shard := range homes {
		call := q.store.scripts.Revive(shard, what, []script.Ref{{Key: key, ID: id}})
		if err := q.store.run(ctx, call); err != nil {
			return 0, err
		}
		if outcome = call.Ints()[0]; outcome != script.NotRevived {
			return outcome, nil
		}
	}
	return outcome, nil
}

// ReplayAll replays the dead letters of a key, or of all keys for AnyKey, that are there
// when it is called. It tells how many came back; those whose id is there again, or whose
// key is draining, stay.
func (q *Queue) ReplayAll(ctx context.Context, key string) (n int64, err error) {
	return q.reviveAll(ctx, script.Replay, key)
}

// DiscardAll throws away the dead letters of a key, or of all keys for AnyKey, and tells
// how many there were.
func (q *Queue) DiscardAll(ctx context.Context, key string) (n int64, err error) {
	return q.reviveAll(ctx, script.Discard, key)
}

func (q *Queue) reviveAll(ctx context.Context, what, name string) (total int64, err error) {
	if err := ValidateKey(name); err != nil {
		return 0, err
	}
	key := name
	if name == AnyKey {
		key = ""
	}
	for shard := range q.store.shards {
		n, err := q.reviveShard(ctx, shard, what, key)
		if total += n; err != nil {
			return total, fmt.Errorf("%s dead letters: %w", what, err)
		}
	}
	note := q.store.scripts.Note(q.store.natural(name), q.who, what, name, fmt.Sprintf("dead letters: %d", total))
	if err := q.store.run(ctx, note); err != nil {
		return total, fmt.Errorf("%s dead letters: %w", what, err)
	}
	return total, nil
}

const revivePage = 200

func (q *Queue) reviveShard(ctx context.Context, shard int, what, key string) (total int64, err error) {
	// Jobs that come back may die again meanwhile: those that are there now are meant.
	left, err := q.kept(ctx, shard, key)
	if err != nil {
		return 0, err
	}
	for after := (position{}); left > 0; {
		list := q.store.scripts.Ended(shard, Dead, key, after.score(), after.Name, revivePage)
		if err := q.store.run(ctx, list); err != nil {
			return total, err
		}
		toServer, more, letters := list.Letters()
		var refs []script.Ref
		for _, l := range letters[:min(left, len(letters))] {
			after = position{l.At, l.Name}
			if j := readLetter(key, l, toServer); j.State == Dead {
				refs = append(refs, script.Ref{Key: j.Key, ID: j.ID})
			}
		}
		left -= len(letters)
		n, err := q.reviveSome(ctx, shard, what, refs)
		if total += n; err != nil || !more {
			return total, err
		}
	}
	return total, nil
}

func (q *Queue) reviveSome(ctx context.Context, shard int, what string, refs []script.Ref) (n int64, err error) {
	if len(refs) == 0 {
		return 0, nil
	}
	call := q.store.scripts.Revive(shard, what, refs)
	if err := q.store.run(ctx, call); err != nil {
		return 0, err
	}
	for _, outcome := range call.Ints() {
		if outcome == script.Revived {
			n++
		}
	}
	return n, nil
}

// kept is how many jobs that ended a shard keeps, of a key or, if that is empty, dead
// ones of all keys.
func (q *Queue) kept(ctx context.Context, shard int, key string) (int, error) {
	call := q.store.scripts.Count(shard)
	if key != "" {
		call = q.store.scripts.Stat(shard, key)
	}
	if err := q.store.run(ctx, call); err != nil {
		return 0, err
	}
	if key != "" {
		return int(call.Counts().Ended), nil
	}
	return int(call.Totals().Dead), nil
}
