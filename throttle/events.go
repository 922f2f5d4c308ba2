package throttle

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle/internal/script"
)

// An EventKind is what an [Event] tells.
type EventKind string

// Of keys.
const (
	Cooled   EventKind = "cooled"   // the other side has it rest, until Until
	Opened   EventKind = "opened"   // its circuit opened, or a trial failed: until Until
	Closed   EventKind = "closed"   // its circuit closed
	Disabled EventKind = "disabled" // it is paused, since its calls failed for too long
)

// Of jobs, of keys whose policy has Events.
const (
	JobDone      EventKind = "done"
	JobRetried   EventKind = "retry"   // an attempt failed, another will follow
	JobRefused   EventKind = "refused" // the other side did not take the call: back to its place
	JobDead      EventKind = "dead"
	JobCancelled EventKind = "cancelled"
	JobExpired   EventKind = "expired"
)

// An Event is something that became of a key or a job.
type Event struct {
	At       time.Time // by the clock of Redis, to the millisecond
	What     EventKind
	Key      string
	ID       string    // of the job; empty for what became of a key
	Attempt  int       // of the job, that it is about
	Reason   string    // why the attempt failed; at most MaxReasonBytes
	Until    time.Time // end of a rest, by the clock of Redis
	Failures int       // of the key, in a row
}

// MaxEvents bounds the events of one call.
const MaxEvents = 1000

// Events lists what came after a cursor, the oldest first, at most most of it, and the cursor for the next call. An
// empty cursor stands for the oldest event that is kept: about ten thousand for each shard. [LatestEvents]
// stands for now.
//
// Whoever handles an event and keeps the cursor afterwards gets each event at least once.
func (q *Queue) Events(ctx context.Context, cursor string, most int) ([]Event, string, error) {
	if most < 1 || most > MaxEvents {
		return nil, "", invalid("most", most, "1 to %d", MaxEvents)
	}
	after, err := q.eventCursor(ctx, cursor)
	if err != nil {
		return nil, "", err
	}
	pipe := q.store.client.Pipeline()
	ranges := make([]*redis.XMessageSliceCmd, q.store.shards)
	for shard := range ranges {
		ranges[shard] = pipe.XRangeN(ctx, script.EventsKey(shard), "("+after[shard], "+", int64(most))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, "", fmt.Errorf("read events: %w", err)
	}
	type found struct {
		event Event
		shard int
		id    string
	}
	var all []found
	for shard, r := range ranges {
		for _, m := range r.Val() {
			all = append(all, found{eventOf(m), shard, m.ID})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return a.event.At.Compare(b.event.At) })
	all = all[:min(most, len(all))]
	events := make([]Event, len(all))
	for i, f := range all {
		events[i] = f.event
		after[f.shard] = f.id
	}
	return events, strings.Join(after, ","), nil
}

// LatestEvents is the cursor behind the events that are there now.
const LatestEvents = "latest"

// eventCursor is the id of the last event of each shard that was read.
func (q *Queue) eventCursor(ctx context.Context, cursor string) ([]string, error) {
	after := make([]string, q.store.shards)
	switch cursor {
	case "":
		for i := range after {
			after[i] = "0-0"
		}
		return after, nil
	case LatestEvents:
		pipe := q.store.client.Pipeline()
		last := make([]*redis.XMessageSliceCmd, len(after))
		for i := range after {
			last[i] = pipe.XRevRangeN(ctx, script.EventsKey(i), "+", "-", 1)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		for i, r := range last {
			after[i] = "0-0"
			if len(r.Val()) > 0 {
				after[i] = r.Val()[0].ID
			}
		}
		return after, nil
	}
	parts := strings.Split(cursor, ",")
	if len(parts) != len(after) || slices.ContainsFunc(parts, func(p string) bool { return !isStreamID(p) }) {
		return nil, invalid("cursor", cursor, "one that an earlier call gave, on the same queue, or an empty one")
	}
	return parts, nil
}

func isStreamID(text string) bool {
	ms, n, found := strings.Cut(text, "-")
	_, err := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(n, 10, 64)
	return found && err == nil && err2 == nil
}

func eventOf(m redis.XMessage) Event {
	field := func(name string) string {
		s, _ := m.Values[name].(string)
		return s
	}
	ms, _, _ := strings.Cut(m.ID, "-")
	at, _ := strconv.ParseInt(ms, 10, 64)
	n, _ := strconv.Atoi(field("n"))
	e := Event{At: time.UnixMilli(at), What: EventKind(field("w")), Key: field("k"), ID: field("i")}
	if e.ID != "" {
		e.Attempt, e.Reason = n, field("d")
		return e
	}
	e.Failures = n
	if until, err := strconv.ParseInt(field("d"), 10, 64); err == nil {
		e.Until = time.UnixMicro(until)
	}
	return e
}
