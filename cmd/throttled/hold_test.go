package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// waiting puts n jobs of cost 1 into the line of a key. Nobody releases them.
func waiting(t *testing.T, q *throttle.Queue, key string, n int) {
	t.Helper()
	for range n {
		_, err := q.Enqueue(t.Context(), throttle.Job{Key: key, Type: "t"})
		require.NoError(t, err)
	}
}

func explained(t *testing.T, q *throttle.Queue, key string) throttle.Explanation {
	t.Helper()
	e, err := q.Explain(t.Context(), key)
	require.NoError(t, err)
	return e
}

func TestPauseAndResume(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	require.Equal(t, "a: paused\nb*: paused\n", ask(t, r, "pause", "a", "b*"))
	require.Equal(t, text(`{"name":"c\u001b[2J","state":"paused"}`), ask(t, r, "pause", "c"+escape, "--json"))
	require.Equal(t, `"c\x1b[2J": paused`+"\n", ask(t, r, "pause", "c"+escape))
	for _, key := range []string{"a", "b", "b1", "c" + escape} {
		require.True(t, explained(t, q, key).Paused, key)
	}
	require.False(t, explained(t, q, "d").Paused)

	require.Equal(t, `a           paused`, strings.Split(ask(t, r, "holds"), "\n")[1])
	require.Contains(t, ask(t, r, "holds", "--json"), `{"name":"b*","paused":true,"draining":false}`)
	require.Equal(t, "a: resumed\nb1: not held itself, but held by b* (paused)\n", ask(t, r, "resume", "a", "b1"))
	require.False(t, explained(t, q, "a").Paused)
	require.True(t, explained(t, q, "b1").Paused, "its pattern holds it")
	require.Equal(t, text(`{"name":"b*","state":"resumed"}`), ask(t, r, "resume", "b*", "--json"))
	require.False(t, explained(t, q, "b1").Paused)
}

// A name like a flag goes after --.
func TestNameThatBeginsWithADash(t *testing.T) {
	r := throttletest.StartRedis(t)
	require.Equal(t, "--help: paused\n", ask(t, r, "pause", "--", "--help"))
	require.True(t, explained(t, openAt(t, r), "--help").Paused)
}

func TestDrain(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	require.Equal(t, "a: draining\n", ask(t, r, "drain", "a"))
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "a", Type: "t"})
	require.ErrorIs(t, err, throttle.ErrDraining)
	require.Equal(t, text(`{"name":"a","state":"draining"}`), ask(t, r, "drain", "a", "--json"))
	ask(t, r, "resume", "a")
	waiting(t, q, "a", 1)
}

func TestCoolDown(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	from, err := r.Client().Time(t.Context()).Result()
	require.NoError(t, err)
	out := ask(t, r, "cooldown", "a", "b", "--for", "10m")
	until := explained(t, q, "a").CoolUntil
	require.WithinRange(t, until, from.Add(10*time.Minute), from.Add(11*time.Minute))
	require.Equal(t, fmt.Sprintf("a: cooling down until %[1]s\nb: cooling down until %[1]s\n", stamp(until)), out)

	require.Equal(t, text(`{"name":"a","state":"cooling down","until":"`+stamp(until.Truncate(time.Second))+`"}`),
		ask(t, r, "cooldown", "a", "--json", "--until", until.In(time.FixedZone("", 3600)).Format(time.RFC3339)))
	require.WithinDuration(t, until.Truncate(time.Second), explained(t, q, "a").CoolUntil, time.Millisecond)

	ask(t, r, "cooldown", "b", "--until", "2026-01-01T00:00:00Z")
	require.Zero(t, explained(t, q, "b").CoolUntil, "an instant that has passed ends it")
	code, _, stderr := try(t, r, "cooldown", "b", "--until", "2999-01-01T00:00:00Z")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, `until "2999-01-01T00:00:00Z" is not allowed: want an instant at most 8784h`)
}

func TestPurge(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	waiting(t, q, "a", 3)
	waiting(t, q, "b1", 1)
	waiting(t, q, "b2", 1)
	waiting(t, q, "c"+escape, 1)
	code, _, _ := try(t, r, "purge", "a")
	require.Equal(t, exitInvalid, code)
	require.EqualValues(t, 3, explained(t, q, "a").Waiting, "not without --yes")
	require.Equal(t, "a: 3 jobs removed\n", ask(t, r, "purge", "a", "--yes"))
	require.Equal(t, "a: 0 jobs removed\n", ask(t, r, "purge", "a", "--yes"))
	require.Equal(t, text(`{"name":"b*","removed":2}`), ask(t, r, "purge", "b*", "--yes", "--json"))
	require.Equal(t, `"c\x1b[2J": 1 job removed`+"\n", ask(t, r, "purge", "c"+escape, "--yes"))
}

// Flags choose among the jobs of a key; what fits all of them goes.
func TestPurgeWhere(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	now, err := r.Client().Time(t.Context()).Result()
	require.NoError(t, err)
	add := func(id, kind string, delay time.Duration) {
		job := throttle.Job{Key: "k", ID: id, Type: kind}
		if delay > 0 {
			job.NotBefore = now.Add(delay)
		}
		_, err := q.Enqueue(t.Context(), job)
		require.NoError(t, err)
	}
	left := func() (ids []string) {
		for _, state := range []string{throttle.Waiting, throttle.Delayed} {
			page, err := q.Jobs(t.Context(), "k", state, throttle.Page{})
			require.NoError(t, err)
			for _, j := range page.Jobs {
				ids = append(ids, j.ID)
			}
		}
		return ids
	}
	add("a-1", "x", 0)
	add("a-2", "y", 0)
	add("b-1", "y", 0)
	add("a-3", "y", time.Hour)
	add("b-2", "x", time.Hour)
	for _, step := range []struct {
		flags []string
		want  string
		left  []string
	}{
		{[]string{"--before", "1h"}, "k: 0 jobs removed\n", []string{"a-1", "a-2", "b-1", "a-3", "b-2"}},
		{[]string{"--before", "2001-01-01T00:00:00Z", "--json"}, text(`{"name":"k","removed":0}`), []string{"a-1", "a-2", "b-1", "a-3", "b-2"}},
		{[]string{"--id-prefix", "a-", "--type", "y", "--state", "waiting"}, "k: 1 job removed\n", []string{"a-1", "b-1", "a-3", "b-2"}},
		{[]string{"--state", "delayed", "--type", "x"}, "k: 1 job removed\n", []string{"a-1", "b-1", "a-3"}},
		{[]string{"--type", "x", "--before", now.Add(time.Hour).Format(time.RFC3339)}, "k: 1 job removed\n", []string{"b-1", "a-3"}},
		{[]string{"--before", "1us"}, "k: 2 jobs removed\n", nil},
	} {
		require.Equal(t, step.want, ask(t, r, append([]string{"purge", "k", "--yes"}, step.flags...)...))
		require.Equal(t, step.left, left(), "%v", step.flags)
	}
	code, _, stderr := try(t, r, "purge", "k", "--yes", "--before", "9999-01-01T00:00:00Z")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, `--before "9999-01-01T00:00:00Z" is not allowed: want a time in the years 1970 to 2261`)
	require.Regexp(t, `purge +k +- +jobs: 1 \(state waiting, type y, id a-\*\)`, ask(t, r, "trail"))
}

func TestRepair(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	waiting(t, q, "a", 2)
	require.Equal(t, "a: nothing to repair\n", ask(t, r, "repair", "a"))
	for range 2 { // the line is lost from the set of those that are looked at
		keys, err := r.Client().Keys(t.Context(), "weir:{*}:due").Result()
		require.NoError(t, err)
		require.Len(t, keys, 1)
		require.NoError(t, r.Client().Del(t.Context(), keys[0]).Err())
		out := ask(t, r, "repair", "a", "--json")
		require.Equal(t, text(`{"key":"a","repairs":1}`), out)
	}
	require.Equal(t, `"a\x1b[2J": nothing to repair`+"\n", ask(t, r, "repair", "a"+escape))
}

// at stands for every instant in what a command prints.
var at = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)

func withoutTimes(s string) string { return at.ReplaceAllString(s, "AT") }

func TestTrail(t *testing.T) {
	r := throttletest.StartRedis(t)
	require.Equal(t, "AT  WHO  WHAT  NAME  OLD  NEW\n", ask(t, r, "trail"))
	require.Empty(t, ask(t, r, "trail", "--json"))
	require.Equal(t, "k: paused\n", ask(t, r, "pause", "k", "--by", "ann"))
	require.Equal(t, "k: resumed\n", ask(t, r, "resume", "k", "--by", "bob"+escape))
	ask(t, r, "policy", "set", "a"+c1, "--rate", "1/s", "--by", "ann")
	ask(t, r, "purge", "k", "--yes", "--by", "ann")

	// The first column is as wide as an instant, so its title stands apart from it.
	lines := strings.Split(withoutTimes(ask(t, r, "trail")), "\n")
	require.Regexp(t, `^AT +WHO +WHAT +NAME +OLD +NEW$`, lines[0])
	require.Equal(t, []string{
		`AT  ann           purge   k            -       jobs: 0`,
		`AT  ann           policy  "a\u009b2J"  -       1/s, burst 1, max in flight 100`,
		`AT  "bob\x1b[2J"  resume  k            paused  -`,
		`AT  ann           pause   k            -       paused`,
	}, lines[1:5])
	require.Equal(t, text(
		`{"at":"AT","who":"ann","what":"purge","name":"k","old":"","new":"jobs: 0"}`,
		`{"at":"AT","who":"ann","what":"policy","name":"a\u009b2J","old":"","new":"1/s, burst 1, max in flight 100"}`,
	), withoutTimes(ask(t, r, "trail", "--limit", "2", "--json")))
}
