package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func TestKeys(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	require.Equal(t, "KEY  WAITING  DELAYED  IN FLIGHT  KEPT  OLDEST  EMPTY  LIMIT\n", ask(t, r, "keys"))
	require.Empty(t, ask(t, r, "keys", "--json"))
	ask(t, r, "policy", "set", "slow", "--rate", "1/h", "--burst", "2")
	waiting(t, q, "slow", 3)
	waiting(t, q, "held", 1)
	ask(t, r, "pause", "held")
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "late" + escape, Type: "t", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)

	lines := strings.Split(ask(t, r, "keys"), "\n")
	require.Regexp(t, `^held +1 +0 +0 +0 +[\d.]+m?s +not known +10/s burst 1$`, lines[1])
	require.Regexp(t, `^"late\\x1b\[2J" +0 +1 +0 +0 +- +- +10/s burst 1$`, lines[2])
	require.Regexp(t, `^slow +3 +0 +0 +0 +[\d.]+m?s +\S+Z \(in (1h|59m59\.\ds)\) +1/h burst 2$`, lines[3])
	require.Len(t, lines, 5)
	require.Len(t, strings.Split(ask(t, r, "keys", "*"), "\n"), 5)
	require.Regexp(t, `^KEY.*\nslow .*\n$`, ask(t, r, "keys", "s*"))
	require.Regexp(t, `^KEY.*\nslow .*\n$`, ask(t, r, "keys", "slow"))

	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(ask(t, r, "keys", "slow", "--json")), &got))
	oldest, err := time.Parse(time.RFC3339, got["oldest"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), oldest, patience)
	require.GreaterOrEqual(t, got["oldest_seconds"], 0.0)
	require.NotEmpty(t, got["empty"])
	for _, name := range []string{"oldest", "oldest_seconds", "empty"} {
		delete(got, name)
	}
	require.Equal(t, map[string]any{
		"key": "slow", "waiting": 3.0, "delayed": 0.0, "in_flight": 0.0, "kept": 0.0, "level": 0.0, "backlog": 3.0,
		"policy": map[string]any{"key": "slow", "rate": "1/h", "burst": 2.0, "max_in_flight": 100.0, "ageing": "1m", "listen": "obey"},
	}, got)
	require.Contains(t, ask(t, r, "keys", "late*", "--json"), `"waiting":0,"delayed":1,"in_flight":0,"kept":0,"level":0,"backlog":0,"oldest_seconds":0,"policy":`)
}

// All keys are listed, once each, however small the pages.
func TestKeysPageByPage(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	const keys = 400
	jobs := make([]throttle.Job, keys)
	for i := range jobs {
		jobs[i] = throttle.Job{Key: fmt.Sprint("key ", i), Type: "t"}
	}
	_, err := q.EnqueueMany(t.Context(), jobs)
	require.NoError(t, err)
	seen := make(map[string]int)
	pages := 0
	for cursor := ""; ; pages++ {
		next := ""
		for _, line := range strings.Split(strings.TrimSpace(ask(t, r, "keys", "--limit", "60", "--json", "--cursor", cursor)), "\n") {
			var v struct{ Key, Next string }
			require.NoError(t, json.Unmarshal([]byte(line), &v))
			if next = v.Next; v.Next == "" {
				seen[v.Key]++
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	require.Len(t, seen, keys)
	for key, times := range seen {
		require.Equal(t, 1, times, key)
	}
	require.Greater(t, pages, 2)
	require.Regexp(t, `\nto go on: --cursor \S+\n$`, ask(t, r, "keys", "--limit", "60"))

	code, out, stderr := try(t, r, "keys", "--cursor", "nonsense!")
	require.Equal(t, exitInvalid, code)
	require.Empty(t, out)
	require.Contains(t, stderr, `--cursor "nonsense!" is not allowed: want what the page before said is next`)
}

func TestStats(t *testing.T) {
	r := throttletest.StartRedis(t)
	q := openAt(t, r)
	waiting(t, q, "a", 3)
	waiting(t, q, "b", 1)
	_, err := q.Enqueue(t.Context(), throttle.Job{Key: "b", Type: "t", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, "b: 2 jobs removed\n", ask(t, r, "purge", "b", "--yes"))
	ask(t, r, "max-waiting", "3")
	_, err = q.Enqueue(t.Context(), throttle.Job{Key: "b", Type: "t"})
	require.ErrorIs(t, err, throttle.ErrFull)

	out := ask(t, r, "stats")
	for _, want := range []string{
		`(?m)^keys +1 +that have jobs$`, `(?m)^waiting +3 +at most 3 with those delayed$`, `(?m)^delayed +0 +until`, `(?m)^in flight +0 +on`,
		`(?m)^enqueued +5 +taken`, `(?m)^purged +2$`, `(?m)^refused +1 +new`,
	} {
		require.Regexp(t, want, out)
	}
	require.Equal(t, text(`{"keys":1,"waiting":3,"delayed":0,"in_flight":0,"dead":0,"done":0,"max_waiting":3,"totals":{`+
		`"enqueued":5,"departed":0,"done":0,"retried":0,"dead":0,"expired":0,"cancelled":0,"purged":2,"displaced":0,"dropped":0,`+
		`"refused":1,"replaced":0,"replayed":0,"discarded":0,"evicted":0}}`), ask(t, r, "stats", "--json"))
}

func TestMaxWaiting(t *testing.T) {
	r := throttletest.StartRedis(t)
	waiting(t, openAt(t, r), "a", 1)
	require.Equal(t, "max waiting: no bound, 1 job now\n", ask(t, r, "max-waiting"))
	require.Equal(t, "max waiting: 5, 1 job now\n", ask(t, r, "max-waiting", "5", "--by", "ann"))
	require.Equal(t, text(`{"max_waiting":5,"waiting":1}`), ask(t, r, "max-waiting", "--json"))
	require.Equal(t, "max waiting: no bound, 1 job now\n", ask(t, r, "max-waiting", "0"))
	require.Contains(t, ask(t, r, "trail", "--json"), `"who":"ann","what":"max_waiting","name":"*","old":"0","new":"5"`)
}
