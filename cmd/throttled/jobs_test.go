package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
	"github.com/weirq/weir/worker/httpjob"
)

// line puts calls into the line of a key, with something secret in each.
func line(t *testing.T, q *throttle.Queue, key string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		job, err := httpjob.Request{
			URL: "http://user:S3CRET@127.0.0.1:1/" + id, Headers: map[string]string{"Authorization": "Bearer S3CRET"}, Body: []byte("S3CRET\x00\xff\n"),
		}.Job(key)
		require.NoError(t, err)
		job.ID = id
		_, err = q.Enqueue(t.Context(), job)
		require.NoError(t, err)
	}
}

// idsOf are the ids of the waiting jobs of a key, in their order.
func idsOf(t *testing.T, r *throttletest.Redis, key string) (ids []string) {
	t.Helper()
	for row := range strings.Lines(ask(t, r, "jobs", "list", key, "--json")) {
		var v listedJob
		require.NoError(t, json.Unmarshal([]byte(row), &v))
		ids = append(ids, v.ID)
	}
	return ids
}

func TestJobsList(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	require.Equal(t, "POSITION  ID  PRIORITY  COST  ATTEMPTS  ENQUEUED\n", ask(t, r, "jobs", "list", "k"))
	require.Empty(t, ask(t, r, "jobs", "list", "k", "--json"))
	line(t, q, "k", "a", "b", "c")
	late := time.Now().Add(time.Hour).UTC()
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: "late", Type: "t", NotBefore: late, Cost: 7, Priority: 3})
	require.NoError(t, err)

	out := ask(t, r, "jobs", "list", "k")
	require.Equal(t, text(
		`POSITION  ID  PRIORITY  COST  ATTEMPTS  ENQUEUED`,
		`1         a   0         1     0         AT`,
		`2         b   0         1     0         AT`,
		`3         c   0         1     0         AT`,
	), withoutTimes(out))
	require.NotContains(t, out, "S3CRET")
	out = ask(t, r, "jobs", "list", "k", "--state", "delayed")
	require.Regexp(t, `^UNTIL +ID +PRIORITY +COST +ATTEMPTS +ENQUEUED\n`+late.Format(time.RFC3339)[:16]+`\S+ +late +3 +7 +0 +\S+Z\n$`, out)
	require.Equal(t, text(
		`{"key":"k","id":"late","state":"delayed","position":0,"at":"AT","enqueued":"AT","attempts":0,"cost":7,"priority":3}`,
	), withoutTimes(ask(t, r, "jobs", "list", "k", "--state", "delayed", "--json")))

	out = ask(t, r, "jobs", "list", "k", "--limit", "2")
	_, cursor, found := strings.Cut(out, "to go on: --cursor ")
	require.True(t, found)
	require.Equal(t, "POSITION  ID  PRIORITY  COST  ATTEMPTS  ENQUEUED\n3         c   0         1     0         AT\n",
		withoutTimes(ask(t, r, "jobs", "list", "k", "--limit", "2", "--cursor", strings.TrimSpace(cursor))))
	rows := strings.Split(ask(t, r, "jobs", "list", "k", "--limit", "2", "--json"), "\n")
	require.Equal(t, fmt.Sprintf(`{"next":%q}`, strings.TrimSpace(cursor)), rows[2])
	for _, state := range []string{"waiting", "dead"} {
		code, _, stderr := try(t, r, "jobs", "list", "k", "--state", state, "--cursor", "x")
		require.Equal(t, exitInvalid, code)
		require.Contains(t, stderr, `--cursor "x" is not allowed`)
	}
}

func TestJobsGet(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	ask(t, r, "policy", "set", "k"+escape, "--rate", "1/h")
	line(t, q, "k"+escape, "first")
	job := throttle.Job{
		Key: "k" + escape, ID: "a", Type: "t", Payload: []byte("S3CRET\x00"), Headers: map[string]string{"H": "S3CRET" + escape},
		Cost: 2, Priority: 4, TTL: 48 * time.Hour, Timeout: 90 * time.Second, MaxAttempts: 7, NotBefore: time.Now().Add(time.Hour),
	}
	_, err := q.Enqueue(t.Context(), job)
	require.NoError(t, err)

	out := ask(t, r, "jobs", "get", job.Key, "a")
	require.Equal(t, text(
		`key            "k\x1b[2J"`,
		`id             a`,
		`state          delayed`,
		`delayed until  AT`,
		`departure      AT (estimated)`,
		`enqueued       AT`,
		`expires        AT (unless it leaves before)`,
		`type           t`,
		`priority       4`,
		`cost           2`,
		`attempts       0 of at most 7`,
		`timeout        1m30s`,
		`payload        7 bytes`,
	), withoutTimes(out))
	out = ask(t, r, "jobs", "get", job.Key, "first")
	require.Contains(t, out, "\nposition   1\n")
	require.NotContains(t, out, "S3CRET")
	require.Contains(t, ask(t, r, "jobs", "get", job.Key, "a", "--headers"), "\n\nHeaders:\nHEADER  VALUE\nH       \"S3CRET\\x1b[2J\"\n")
	require.Equal(t, "S3CRET\x00", ask(t, r, "jobs", "get", job.Key, "a", "--payload"))
	code, out, stderr := try(t, r, "dead", "get", job.Key, "a", "--payload")
	require.Equal(t, exitInvalid, code)
	require.Empty(t, out)
	require.Equal(t, `throttled: job "a" of key "k\x1b[2J" is delayed, not dead: see throttled jobs get`+"\n", stderr)

	out = ask(t, r, "jobs", "get", job.Key, "a", "--json")
	require.NotContains(t, out, "S3CRET")
	require.Equal(t, text(`{"key":"k\u001b[2J","id":"a","state":"delayed","position":0,"estimated_departure":"AT","type":"t","priority":4,"cost":2,`+
		`"attempts":0,"max_attempts":7,"timeout":"1m30s","last":false,"enqueued":"AT","at":"AT","expires":"AT","payload_bytes":7,"history":[]}`),
		withoutTimes(out))
	require.Contains(t, ask(t, r, "jobs", "get", job.Key, "a", "--json", "--headers"), `"headers":{"H":"S3CRET\u001b[2J"}`)

	for _, args := range [][]string{{"k", "none" + escape}, {"k", ""}} {
		code, out, stderr := try(t, r, append([]string{"jobs", "get"}, args...)...)
		require.Equal(t, exitInvalid, code)
		require.Empty(t, out)
		require.Contains(t, stderr, "is not allowed: want 1 to 128 printable")
		require.NotContains(t, stderr, escape)
	}
}

// A job that is not there may have been: cancelled and expired ones leave nothing behind.
func TestJobsGetOfAJobThatIsNotKept(t *testing.T) {
	r := throttletest.StartRedis(t)
	line(t, openAt(t, r), "k", "a")
	ask(t, r, "jobs", "cancel", "k", "a")
	for _, of := range []string{"jobs", "dead"} {
		code, out, stderr := try(t, r, of, "get", "k", "a")
		require.Equal(t, exitInvalid, code)
		require.Empty(t, out)
		require.Regexp(t, `^throttled: look up job "a" of key "k": no such job: there was none, or it has ended and is not kept: .* --keep-done .*\n$`, stderr)
	}
}

// What is told of the departure of a job says if it expires before it.
func TestJobsGetOfAJobThatExpiresFirst(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	ask(t, r, "policy", "set", "k", "--rate", "1/h")
	line(t, q, "k", "first")
	for id, ttl := range map[string]time.Duration{"late": time.Minute, "in-time": 3 * time.Hour} {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: id, Type: "t", TTL: ttl})
		require.NoError(t, err)
	}
	require.Regexp(t, `\nexpires +\S+Z \(before it leaves, as estimated\)\n`, ask(t, r, "jobs", "get", "k", "late"))
	require.Regexp(t, `"expires":"\S+Z","expires_first":true,`, ask(t, r, "jobs", "get", "k", "late", "--json"))
	require.Regexp(t, `\nexpires +\S+Z \(unless it leaves before\)\n`, ask(t, r, "jobs", "get", "k", "in-time"))
	require.NotContains(t, ask(t, r, "jobs", "get", "k", "in-time", "--json"), "expires_first")
}

// An estimate is worth nothing where no scheduler runs, and that is told.
func TestJobsGetOfAJobThatNobodyReleases(t *testing.T) {
	r := throttletest.StartRedis(t)
	line(t, openAt(t, r), "k", "a")
	require.Eventually(t, func() bool {
		return strings.Contains(ask(t, r, "jobs", "get", "k", "a"), "\nheld       waits, as no scheduler releases it: is one running?\n")
	}, patience, 50*time.Millisecond)
	require.Contains(t, ask(t, r, "jobs", "get", "k", "a", "--json"), `"cause":"scheduler",`)
	ask(t, r, "pause", "k")
	require.NotContains(t, ask(t, r, "jobs", "get", "k", "a"), "\nheld ")
}

// What is stored may have been damaged from outside.
func TestJobsGetOfADamagedJob(t *testing.T) {
	r := throttletest.StartRedis(t)
	line(t, openAt(t, r), "k", "a")
	names, err := r.Client().Keys(t.Context(), "weir:{*}:j:k").Result()
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.NoError(t, r.Client().HSet(t.Context(), names[0], "a", "nonsense").Err())
	require.Contains(t, ask(t, r, "jobs", "get", "k", "a"), "\ndamaged    the stored job is damaged\n")
	require.Contains(t, ask(t, r, "jobs", "get", "k", "a", "--json"), `"damaged":"the stored job is damaged","payload_bytes":0`)
	code, out, stderr := try(t, r, "jobs", "get", "k", "a", "--payload")
	require.Equal(t, exitFailed, code)
	require.Empty(t, out)
	require.Contains(t, stderr, `payload of job "a" of key "k": the stored job is damaged`)
}

func TestJobsMove(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	line(t, q, "k", "a", "b", "c", "d")
	require.Equal(t, "b: moved to the front\nc: moved to the front\n", ask(t, r, "jobs", "front", "k", "c", "b"))
	require.Equal(t, []string{"c", "b", "a", "d"}, idsOf(t, r, "k"))
	require.Equal(t, "d: priority 9\n", ask(t, r, "jobs", "priority", "k", "d", "9"))
	require.Equal(t, []string{"d", "c", "b", "a"}, idsOf(t, r, "k"))
	require.Equal(t, text(`{"key":"k","id":"d","outcome":"priority 0"}`), ask(t, r, "jobs", "priority", "k", "d", "0", "--json"))
	require.Equal(t, []string{"c", "b", "a", "d"}, idsOf(t, r, "k"))
}

func TestJobsMoveOneThatIsDelayed(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	line(t, q, "k", "a")
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "k", ID: "late", Type: "t", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, "late: moved to the front, once its delay is over\na: moved to the front\n", ask(t, r, "jobs", "front", "k", "a", "late"))
}

// The words of errors are those of the commands, and each says what its own argument takes.
func TestWrongJobRequests(t *testing.T) {
	r := throttletest.StartRedis(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"jobs", "priority", "k", "nope", "1"}, `throttled: change the priority of job "nope" of key "k": no such job` + "\n"},
		{[]string{"jobs", "front", "k", "nope"}, `throttled: move job "nope" of key "k" to the front: no such job` + "\n"},
		{[]string{"jobs", "release", "k", "nope", "nor"}, `throttled: release job "nope" of key "k": no such job` + "\n" +
			`throttled: release job "nor" of key "k": no such job` + "\n"},
		{[]string{"jobs", "priority", "k", "a", "-1"}, `throttled: P "-1" is not allowed: want a whole number from 0 to 9` + "\nSee throttled jobs priority --help.\n"},
		{[]string{"jobs", "priority", "k", "a", "-x"}, "throttled: unknown shorthand flag: 'x' in -x\nSee throttled jobs priority --help.\n"},
		{[]string{"jobs", "front", "", "a"}, `throttled: KEY "" is not allowed: want 1 to 512 bytes` + "\n"},
		{[]string{"drain", ""}, `throttled: NAME "" is not allowed: want 1 to 512 bytes` + "\n"},
	} {
		code, out, stderr := try(t, r, c.args...)
		require.Equal(t, exitInvalid, code)
		require.Empty(t, out)
		require.Equal(t, c.want, stderr)
	}
}

// Of several jobs, those that are there are dealt with; the others are the error.
func TestJobsThatAreNotThere(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	line(t, q, "k", "a", "b")
	line(t, q, "k"+escape, "a")
	for _, do := range []string{"release", "cancel"} {
		code, out, stderr := try(t, r, "jobs", do, "k"+escape, "x", "a", "y")
		require.Equal(t, exitFailed, code)
		require.Regexp(t, `^a: (released|cancelled \(it was waiting\))\n$`, out)
		require.Equal(t, "throttled: "+do+` job "x" of key "k\x1b[2J": no such job`+"\nthrottled: "+do+` job "y" of key "k\x1b[2J": no such job`+"\n", stderr)
	}
	ask(t, r, "jobs", "cancel", "k", "a")
	for _, args := range [][]string{{"front", "k", "a"}, {"release", "k", "a"}, {"cancel", "other", "b"}, {"priority", "k", "a", "1"}} {
		code, out, stderr := try(t, r, append([]string{"jobs"}, args...)...)
		require.Equal(t, exitInvalid, code, "nothing changed")
		require.Empty(t, out)
		require.Contains(t, stderr, "no such job")
	}
	require.Equal(t, text(`{"key":"k","id":"b","outcome":"cancelled","was":"waiting"}`), ask(t, r, "jobs", "cancel", "k", "b", "--json"))
	require.Empty(t, idsOf(t, r, "k"))
}

// If Redis goes away in between, that is the failure, and what failed before is told.
func TestJobsThatEndHalfWay(t *testing.T) {
	var out bytes.Buffer
	c := conn{out: &out}
	outcomes := map[string]error{"a": nil, "b": throttle.ErrNoJob, "c": errors.New("connection refused"), "d": nil, "e": throttle.ErrAlive}
	err := c.eachJob("k", []string{"a", "b", "e", "c", "d"}, func(id string) (string, string, error) { return "done", "", outcomes[id] })
	var f *failure
	require.ErrorAs(t, ended(t.Context(), err), &f)
	require.Equal(t, exitRedis, f.code)
	require.EqualError(t, err, "connection refused; before that: no such job; a job with this id has not ended")
	require.Equal(t, "a: done\n", out.String())
}

// A release goes past a hold, is written down, and a running job can only be kept from
// another attempt.
func TestJobsReleaseAndCancelWhatRuns(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	over := make(chan struct{})
	recv := newReceiver(t, func(string, *http.Request) { <-over })
	serveHere(t, "--redis", r.URL())
	t.Cleanup(func() { close(over) })
	ask(t, r, "pause", "k")
	for _, id := range []string{"a", "b"} {
		_, err := q.Enqueue(t.Context(), recv.job(t, "k", id))
		require.NoError(t, err)
	}
	require.Equal(t, "b: released\n", ask(t, r, "jobs", "release", "k", "b", "--by", "ann"))
	require.Eventually(t, func() bool { return recv.timesOf("b") == 1 }, patience, time.Millisecond)
	require.Equal(t, []string{"a"}, idsOf(t, r, "k"))
	require.Contains(t, ask(t, r, "trail", "--json"), `"who":"ann","what":"release","name":"k"`)

	require.Regexp(t, `^STATE +SINCE +ID +COST +ATTEMPTS +ENQUEUED\nrunning +\S+Z +b +1 +1 +\S+Z\n$`, ask(t, r, "jobs", "list", "k", "--state", "in_flight"))
	require.Contains(t, ask(t, r, "jobs", "get", "k", "b"), "\nstate     running\nslot      ")
	for _, do := range []string{"front", "release"} {
		code, _, stderr := try(t, r, "jobs", do, "k", "b")
		require.Equal(t, exitInvalid, code)
		require.Regexp(t, `(move|release) job "b" of key "k"( to the front)?: the job does not wait any more: it is running`, stderr)
	}
	require.Equal(t, "b: not tried again after this attempt (it was running)\n", ask(t, r, "jobs", "cancel", "k", "b"))
	require.Contains(t, ask(t, r, "jobs", "get", "k", "b"), "\nattempts  1, cancelled: there will be no other\n")
	require.Contains(t, ask(t, r, "jobs", "get", "k", "b", "--json"), `"last":true`)
}

// Jobs that are done are looked up as long as their policy keeps them.
func TestJobsThatAreDone(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	recv := newReceiver(t, nil)
	serveHere(t, "--redis", r.URL())
	ask(t, r, "policy", "set", "k", "--keep-done", "1h")
	_, err := q.Enqueue(t.Context(), recv.job(t, "k", "a"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return strings.Contains(ask(t, r, "jobs", "list", "k", "--state", "done", "--json"), `"id":"a","state":"done"`)
	}, patience, 5*time.Millisecond)
	require.Regexp(t, `^ENDED +ID +COST +ATTEMPTS\n\S+Z +a +1 +1\n$`, ask(t, r, "jobs", "list", "k", "--state", "done"))
	require.Contains(t, ask(t, r, "jobs", "get", "k", "a"), "\nstate     done\nended     ")
	require.Contains(t, ask(t, r, "stats", "--json"), `"done":1,"max_waiting":0`)

	require.Equal(t, "a: replayed\n", ask(t, r, "dead", "replay", "k", "a"))
	require.Eventually(t, func() bool { return recv.timesOf("a") == 2 }, patience, time.Millisecond)
}
