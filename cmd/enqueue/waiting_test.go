package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// far is an instant that has not come when these tests run.
var far = time.Date(2260, 12, 1, 6, 0, 0, 0, time.UTC)

func TestOneJobWithLifetimes(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	args := func(id string, more ...string) []string {
		return append([]string{"--key", "k", "--url", "http://example.com", "--rate", "1/h", "--id", id}, more...)
	}
	for _, a := range [][]string{
		args("plain"), args("urgent", "--priority", "9", "--ttl", "90s"),
		args("late", "--not-before", far.In(time.FixedZone("", 3600)).Format(time.RFC3339), "--deadline", far.Add(time.Hour).Format(time.RFC3339)),
		args("past", "--not-before", "0001-01-01T00:00:00Z"), args("1969", "--not-before", "1969-07-20T20:17:00Z"),
	} {
		got := command(t.Context(), "", a...)
		require.Equal(t, result{out: got.out}, got)
	}
	q := newQueue(t, r)
	look := func(id string) throttle.JobInfo {
		info, err := q.Job(t.Context(), "k", id)
		require.NoError(t, err)
		return info
	}
	require.EqualValues(t, 1, look("urgent").Position, "it goes first")
	require.Equal(t, 9, look("urgent").Job.Priority)
	require.WithinDuration(t, look("urgent").Enqueued.Add(90*time.Second), look("urgent").Expires, time.Millisecond)
	require.EqualValues(t, 2, look("plain").Position)
	require.Zero(t, look("plain").Expires)
	require.Equal(t, throttle.Delayed, look("late").State)
	require.WithinDuration(t, far, look("late").At, time.Second)
	require.WithinDuration(t, far.Add(time.Hour), look("late").Expires, time.Second)
	for _, id := range []string{"past", "1969"} {
		require.Equal(t, throttle.Waiting, look(id).State, "what is past means now")
	}
}

// A receipt promises no departure to a job that expires before it.
func TestOneJobThatExpiresFirst(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	enqueue := func(key string, more ...string) result {
		return command(t.Context(), "", append([]string{"--key", key, "--url", "http://example.com", "--rate", "1/m"}, more...)...)
	}
	require.Zero(t, enqueue("k").code)
	for _, c := range []struct {
		name string
		key  string
		args []string
		want string
	}{
		{"past", "free", []string{"--deadline", "2020-01-01T00:00:00Z"},
			`\ndeparture  none: it expires at once\nexpires    2020-01-01T00:00:00.000Z, which is past\n$`},
		{"behind a line", "k", []string{"--ttl", "10s"},
			`\ndeparture  .*Z \(in (1m0s|59.*s)\)\nexpires    .*Z \(in (10s|9.*s)\), before its departure\n(held .*\n)?$`},
		{"in time", "k", []string{"--ttl", "1h"},
			`\nexpires    .*Z \(in (1h0m0s|59m.*s)\), unless it leaves before\n(held .*\n)?$`},
	} {
		got := enqueue(c.key, c.args...)
		require.Equal(t, result{out: got.out}, got, c.name)
		require.Regexp(t, c.want, got.out, c.name)
	}
	require.Regexp(t, `"expires":"\S+Z","expires_first":true,"duplicate"`, enqueue("k", "--ttl", "10s", "--json").out)
	out := enqueue("k", "--ttl", "1h", "--json").out
	require.Regexp(t, `"expires":"\S+Z","duplicate"`, out)

	got := command(t.Context(), "{\"key\":\"k\",\"ttl\":\"10s\"}\n{\"key\":\"k\"}\n", "--file", "-", "--url", "http://example.com")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "\nexpiring first  1\n")
}

// What can be compared by the clock of Redis alone is compared then.
func TestOneJobWhoseDelayIsTooLong(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	at := func(in time.Duration) string { return time.Now().Add(in).UTC().Format(time.RFC3339) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--not-before", at(2 * time.Hour), "--ttl", "1h"}, "^enqueue: --ttl 1h0m0s is not allowed: want more than the 1h59m.*s until it may leave: it counts from the enqueue\n$"},
		{[]string{"--delay", "2h", "--deadline", at(time.Hour)}, `^enqueue: --deadline "\S+Z" is not allowed: want none before not_before, `},
	} {
		got := command(t.Context(), "", append(c.args, "--key", "k", "--url", "http://example.com")...)
		require.Equal(t, exitInvalid, got.code)
		require.Empty(t, got.out)
		require.Regexp(t, c.want, got.err)
	}
	info, err := newQueue(t, r).Key(t.Context(), "k")
	require.NoError(t, err)
	require.Zero(t, info.Delayed)
}

// What the receipt says of a job that is the same as another.
func TestOneJobThatIsNotTheFirst(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	enqueued := func(key string, more ...string) string {
		got := command(t.Context(), "", append([]string{"--key", key, "--url", "http://example.com", "--rate", "1/h"}, more...)...)
		require.Equal(t, result{out: got.out}, got)
		return got.out
	}
	receipt := func(key string, more ...string) (p printed) {
		require.NoError(t, json.Unmarshal([]byte(enqueued(key, append(more, "--json")...)), &p))
		p.EstimatedDeparture = ""
		return p
	}
	for _, flags := range [][]string{{"--dedupe", "order-7"}, {"--dedupe-content"}} {
		key := "k" + flags[0]
		first := receipt(key, flags...)
		require.Equal(t, printed{ID: first.ID, Key: key, State: "waiting", Position: 1}, first)
		require.Equal(t, printed{ID: first.ID, Key: key, State: "waiting", Position: 1, Duplicate: true}, receipt(key, flags...))
		require.Contains(t, enqueued(key, flags...), "\nduplicate  yes: the job that was there is as it was\n")
		other := receipt(key, "--data", "x", "--dedupe", "other")
		require.EqualValues(t, 2, other.Position)
	}

	q := newQueue(t, r)
	enqueued("replaced", "--id", "first", "--dedupe", "n", "--replace", "--data", "old")
	require.Equal(t, printed{ID: "first", Key: "replaced", State: "waiting", Position: 1, Duplicate: true, Replaced: true},
		receipt("replaced", "--id", "second", "--dedupe", "n", "--replace", "--data", "new"))
	out := enqueued("replaced", "--dedupe", "n", "--replace", "--data", "newest")
	require.Regexp(t, `^id         first\nstate      waiting\nposition   1\ndeparture  .*\n(held .*\n)?replaced   yes: it took the place`, out)
	require.NotContains(t, out, "duplicate")
	info, err := q.Job(t.Context(), "replaced", "first")
	require.NoError(t, err)
	require.Equal(t, "newest", string(info.Job.Payload))

	first := receipt("debounced", "--dedupe", "n", "--debounce", "1h", "--max-debounce", "90m")
	require.Equal(t, "delayed", first.State)
	require.Equal(t, printed{ID: first.ID, Key: "debounced", State: "delayed", Duplicate: true, Replaced: true},
		receipt("debounced", "--dedupe", "n", "--debounce", "1h", "--max-debounce", "90m"))
}

// A job that is done is told of as that while its name is kept.
func TestOneJobWithinTheWindowOfAnotherThatIsDone(t *testing.T) {
	r := throttle.Receipt{Key: "k", ID: "a", State: throttle.Done, Duplicate: true}
	var text strings.Builder
	require.NoError(t, writeText(&text, r, time.Now(), ""))
	require.Equal(t, "id         a\nstate      done\nduplicate  yes: the job that was there is as it was\n", text.String())
}

func setPolicy(t *testing.T, q *throttle.Queue, p throttle.Policy) {
	t.Helper()
	p.Limit = throttle.Limit{Rate: 1, Period: time.Hour, Burst: 1}
	require.NoError(t, q.SetPolicy(t.Context(), p))
}

func TestOneJobForAFullKey(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	q := newQueue(t, r)
	setPolicy(t, q, throttle.Policy{Key: "refuse", MaxWaiting: 1})
	setPolicy(t, q, throttle.Policy{Key: "oldest", MaxWaiting: 1, Overflow: throttle.DropOldest})
	setPolicy(t, q, throttle.Policy{Key: "newest", MaxWaiting: 1, Overflow: throttle.DropNewest})
	enqueue := func(key, id string, more ...string) result {
		return command(t.Context(), "", append([]string{"--key", key, "--url", "http://example.com", "--id", id}, more...)...)
	}
	for _, key := range []string{"refuse", "oldest", "newest"} {
		require.Zero(t, enqueue(key, "a").code)
	}

	got := enqueue("refuse", "b")
	require.Equal(t, exitSomeFailed, got.code)
	require.Empty(t, got.out)
	require.Regexp(t, `^enqueue: jobs refused: 1; waiting or delayed in key "refuse": 1, of at most 1; the next one leaves at \d{4}-\S+Z\n$`, got.err)
	got = enqueue("refuse", "b", "--json")
	require.Equal(t, exitSomeFailed, got.code)
	require.Regexp(t, `^{"id":"b","key":"refuse","state":"refused","position":0,"duplicate":false,"replaced":false,"dropped":false,`+
		`"reason":"jobs refused: 1; waiting or delayed in key \\"refuse\\": 1, of at most 1; .*"}\n$`, got.out)

	got = enqueue("oldest", "b")
	require.Equal(t, result{out: got.out}, got)
	require.Regexp(t, `^id         b\nstate      waiting\nposition   1\ndeparture  .*\n(held .*\n)?displaced  a: dropped to make room\n$`, got.out)
	got = enqueue("oldest", "c", "--json")
	require.Contains(t, got.out, `"displaced":"b","dropped":false`)

	got = enqueue("newest", "b")
	require.Equal(t, result{out: "id         b\nstate      dropped\ndropped    yes: as many jobs wait under its key as may\n"}, got)
	got = enqueue("newest", "b", "--json")
	require.Equal(t, result{out: `{"id":"b","key":"newest","state":"dropped","position":0,"duplicate":false,"replaced":false,"dropped":true}` + "\n"}, got)

	require.NoError(t, q.SetMaxWaiting(t.Context(), 3))
	got = enqueue("another", "a")
	require.Equal(t, exitSomeFailed, got.code)
	require.Equal(t, "enqueue: jobs refused: 1; waiting or delayed in all keys: 3, of at most 3; throttled max-waiting sets that bound\n", got.err)
}

// Lines that a full key refuses fail, each with its number, and the rest goes on.
func TestManyForFullKeys(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	q := newQueue(t, r)
	setPolicy(t, q, throttle.Policy{Key: "refuse", MaxWaiting: 2})
	setPolicy(t, q, throttle.Policy{Key: "oldest", MaxWaiting: 1, Overflow: throttle.DropOldest})
	setPolicy(t, q, throttle.Policy{Key: "newest", MaxWaiting: 1, Overflow: throttle.DropNewest})
	require.NoError(t, q.Drain(t.Context(), "drained"))
	text := `{"key":"refuse"}
{"key":"refuse"}
{"key":"refuse"}
{"key":"drained"}
{"key":"oldest"}
{"key":"oldest"}
{"key":"newest"}
{"key":"newest"}
{"key":"refuse","id":"last"}
{"key":"free","dedupe":{"name":"n","replace":true}}
{"key":"free","dedupe":{"name":"n","replace":true}}
`
	got := command(t.Context(), text, "--file", "-", "--url", "http://example.com")
	require.Equal(t, exitSomeFailed, got.code)
	complaints := strings.Split(strings.TrimSpace(got.err), "\n")
	require.Len(t, complaints, 4)
	for i, want := range []string{
		`line 3: jobs refused: 1; waiting or delayed in key "refuse": 2, of at most 2; the next one leaves at `,
		`line 4: no new jobs are taken, until it is resumed, by key "drained"`,
		`line 9: jobs refused: 1; waiting or delayed in key "refuse": 2, of at most 2`,
		"3 lines failed: 6 jobs enqueued, 1 replaced, 1 displaced, 1 dropped",
	} {
		require.Contains(t, complaints[i], want)
	}
	require.Regexp(t, `^enqueued        6\nduplicates      0\nreplaced        1\ndisplaced       1\ndropped         1\nfailed          3\nlast departure  `, got.out)
}

// The bound on all keys refuses some jobs of a key and not others.
func TestManyAboveTheBoundOnAllKeys(t *testing.T) {
	r := throttletest.StartRedis(t)
	t.Setenv(redisEnv, r.URL())
	require.NoError(t, newQueue(t, r).SetMaxWaiting(t.Context(), 3))
	got := command(t.Context(), strings.Repeat("{\"key\":\"k\"}\n", 5), "--file", "-", "--url", "http://example.com", "--json")
	require.Equal(t, exitSomeFailed, got.code)
	require.Equal(t, 5, strings.Count(got.out, "\n"))
	require.Contains(t, got.out, `"state":"refused",`)
	require.Regexp(t, `"reason":"jobs refused: 1; .*","line":5}\n$`, got.out)
	require.Contains(t, got.err, "enqueue: line 4: jobs refused: 1; waiting or delayed in all keys: 3, of at most 3; throttled max-waiting sets that bound\n")
	require.Contains(t, got.err, "enqueue: line 5: ")
	require.Contains(t, got.err, "2 lines failed: 3 jobs enqueued\n")

	got = command(t.Context(), "{\"key\":\"k\"}\n", "--file", "-", "--url", "http://example.com")
	require.Equal(t, exitInvalid, got.code, "nothing enqueued")
}

// What was refused and what was lost are told apart, by their numbers if need be.
func TestRefusals(t *testing.T) {
	lost := errors.New("connection refused")
	r := refusalsIn(fmt.Errorf("enqueue: %w", errors.Join(lost,
		&throttle.DrainingError{Keys: []string{"d"}}, &throttle.FullError{Key: "f", Refused: 2, Waiting: 7, Max: 7}, &throttle.FullError{Refused: 1, Max: 9})))
	require.ErrorIs(t, r.of("d"), throttle.ErrDraining)
	require.ErrorIs(t, r.of("d"), throttle.ErrDraining)
	for range 2 {
		require.EqualError(t, r.of("f"), `jobs refused: 1; waiting or delayed in key "f": 7, of at most 7`)
	}
	require.ErrorContains(t, r.of("x"), "in all keys")
	require.NoError(t, r.of("f"), "it was lost")
	require.NoError(t, r.of("x"))
}
