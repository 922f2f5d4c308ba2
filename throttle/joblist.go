package throttle

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// Bounds of a page.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// InFlight stands for Released and Running where jobs are listed.
const InFlight = "in_flight"

// A Page asks for part of a list.
type Page struct {
	Cursor string // what the page before said is next; empty for the first
	Limit  int    // most on the page: 0 means DefaultPage, at most MaxPage
}

func (p Page) withDefaults() (Page, error) {
	if p.Limit == 0 {
		p.Limit = DefaultPage
	}
	if p.Limit < 1 || p.Limit > MaxPage {
		return p, invalid("limit", p.Limit, "1 to %d, or 0 for %d", MaxPage, DefaultPage)
	}
	return p, nil
}

// A JobPage is part of the jobs of a key.
type JobPage struct {
	Jobs []ListedJob
	Next string // cursor of the next page; empty if this is the last
}

// A ListedJob is a job without its payload. Instants are by the clock of Redis.
type ListedJob struct {
	Key, ID  string
	State    string
	Position int64     // in the line; 0 outside it
	At       time.Time // end of its delay, its slot, its release, or its end; zero while it waits
	Enqueued time.Time // zero once it ended
	Attempts int
	Cost     int64
	Priority int
	Reason   string // why it is dead
}

// Jobs lists the jobs of a key in one state: Waiting, in the order in which they leave;
// Delayed, by the end of the delay; InFlight, by release; Dead or Done, by end. A job
// that stays where it is between two pages is listed once.
func (q *Queue) Jobs(ctx context.Context, key, state string, page Page) (JobPage, error) {
	if err := ValidateKey(key); err != nil {
		return JobPage{}, err
	}
	page, err := page.withDefaults()
	if err != nil {
		return JobPage{}, err
	}
	letter := map[string]string{
		Waiting: script.ListWaiting, Delayed: script.ListDelayed, InFlight: script.ListInFlight, Dead: "", Done: "",
	}
	list, known := letter[state]
	if !known {
		return JobPage{}, invalid("state", state, "%s, %s, %s, %s or %s", Waiting, Delayed, InFlight, Dead, Done)
	}
	if list == "" {
		return q.ended(ctx, key, state, page)
	}
	var after position
	if err := after.decode(page.Cursor); err != nil {
		return JobPage{}, err
	}
	var out JobPage
	err = q.store.follow(ctx, key, func(shard int) *script.Call {
		return q.store.scripts.List(shard, key, list, after.score(), after.Name, page.Limit+1)
	}, func(_ int, c *script.Call) (home int) {
		home, out = listedJobs(key, list, page.Limit, c)
		return home
	})
	if err != nil {
		return JobPage{}, fmt.Errorf("list %s jobs of key %q: %w", state, key, err)
	}
	return out, nil
}

func listedJobs(key, list string, limit int, c *script.Call) (home int, page JobPage) {
	home, toServer, first, jobs := c.Listed()
	if len(jobs) > limit {
		jobs = jobs[:limit]
		page.Next = position{Score: jobs[limit-1].At, Name: jobs[limit-1].ID}.encode()
	}
	for i, j := range jobs {
		out := ListedJob{
			Key: key, ID: j.ID, State: j.State, Enqueued: time.UnixMicro(j.Enqueued + toServer),
			Attempts: int(j.Attempts), Cost: j.Cost, Priority: int(j.Priority),
		}
		switch {
		case list == script.ListWaiting:
			out.Position = first + int64(i)
		case j.State == Running:
			out.At = time.UnixMicro(j.Slot + toServer)
		default:
			out.At = time.UnixMicro(j.At + toServer)
		}
		page.Jobs = append(page.Jobs, out)
	}
	return home, page
}

// A position is where a page of a sorted set ended.
type position struct {
	Score int64  `json:"s"`
	Name  string `json:"n"`
}

func (p position) score() string { return fmt.Sprint(p.Score) }

func (p position) encode() string { return encodeCursor(p) }

func (p *position) decode(cursor string) error { return decodeCursor(cursor, p) }

func encodeCursor(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only numbers and strings
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodeCursor(cursor string, v any) error {
	if cursor == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return invalid("cursor", cursor, "what the page before said is next")
	}
	return nil
}
