package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

// buried has jobs die and returns once they have. Nobody runs others after that.
func buried(t *testing.T, r *throttletest.Redis, jobs map[string][]string) {
	t.Helper()
	q := openAt(t, r)
	s := begin(nil, "serve", "--listen", "none", "--allow-network", "127.0.0.0/8", "--redis", r.URL())
	n := int64(0)
	for key, ids := range jobs {
		for _, id := range ids {
			die(t, q, key, id)
			n++
		}
	}
	require.Eventually(t, func() bool {
		stats, err := q.Stats(t.Context())
		require.NoError(t, err)
		return stats.Dead == n
	}, patience, 5*time.Millisecond)
	s.signals <- syscall.SIGTERM
	require.Zero(t, s.exit(t, patience))
}

func TestDeadLetters(t *testing.T) {
	r := throttletest.StartRedis(t)
	require.Equal(t, "ENDED  KEY  ID  COST  ATTEMPTS  REASON\n", ask(t, r, "dead", "list"))
	require.Empty(t, ask(t, r, "dead", "list", "--json"))
	buried(t, r, map[string][]string{"k" + escape: {"a", "b", "c"}, "other": {"x"}})

	out := ask(t, r, "dead", "list")
	require.NotContains(t, out, "S3CRET")
	require.Len(t, strings.Split(out, "\n"), 6)
	require.Regexp(t, `\n\S+Z +"k\\x1b\[2J" +a +1 +1 +.*connection refused.*\n`, out)
	out = ask(t, r, "dead", "list", "other")
	require.Regexp(t, `^ENDED +KEY +ID +COST +ATTEMPTS +REASON\n\S+Z +other +x +1 +1 +.*connection refused.*\n$`, out)
	out = ask(t, r, "dead", "list", "--limit", "3")
	_, cursor, found := strings.Cut(out, "to go on: --cursor ")
	require.True(t, found)
	require.Len(t, strings.Split(ask(t, r, "dead", "list", "--cursor", strings.TrimSpace(cursor)), "\n"), 3)
	require.Regexp(t, `^{"key":"other","id":"x","state":"dead","position":0,"at":"AT","attempts":1,"cost":1,"priority":0,"reason":".*refused.*"}\n$`,
		withoutTimes(ask(t, r, "dead", "list", "other", "--json")))
	require.Regexp(t, `^ENDED +ID +COST +ATTEMPTS +REASON\n`, ask(t, r, "jobs", "list", "other", "--state", "dead"))

	out = ask(t, r, "dead", "get", "other", "x")
	require.NotContains(t, out, "S3CRET")
	require.Regexp(t, `(?s)\nstate     dead\nended     \S+Z\n.*\nattempts  1 of at most 1\nreason    .*refused.*\npayload   9 bytes\n\n`+
		`Attempts that ended:\nATTEMPT +DEPARTED +TOOK +OUTCOME +ERROR\n1 +\S+Z +\S+ +dead +.*refused`, out)
	require.Regexp(t, `"last":true,"at":"\S+Z","reason":".*","payload_bytes":9,"history":\[{"attempt":1,"departed":"\S+Z","ended":"\S+Z","outcome":"dead","error":".*"}\]`,
		ask(t, r, "dead", "get", "other", "x", "--json"))
	require.Equal(t, "body of x", ask(t, r, "dead", "get", "other", "x", "--payload"))
}

func TestDeadReplay(t *testing.T) {
	r := throttletest.StartRedis(t)
	buried(t, r, map[string][]string{"k": {"a", "b", "c"}, "other": {"x", "y"}})
	code, out, stderr := try(t, r, "dead", "replay", "k", "a", "none")
	require.Equal(t, exitFailed, code)
	require.Equal(t, "a: replayed\n", out)
	require.Contains(t, stderr, `replay job "none" of key "k": no such job`)
	require.Equal(t, []string{"a"}, idsOf(t, r, "k"))

	require.Equal(t, "k: 2 dead letters replayed\n", ask(t, r, "dead", "replay", "k", "--all", "--by", "ann"))
	require.Equal(t, []string{"a", "b", "c"}, idsOf(t, r, "k"))
	require.Equal(t, text(`{"key":"k","outcome":"replayed","jobs":0}`), ask(t, r, "dead", "replay", "k", "--all", "--json"))
	require.Equal(t, text(`{"outcome":"replayed","jobs":2}`), ask(t, r, "dead", "replay", "--all", "--json"))
	require.Equal(t, "0 dead letters replayed\n", ask(t, r, "dead", "replay", "--all"))
	require.Contains(t, ask(t, r, "trail", "--json"), `"who":"ann","what":"replay","name":"k","old":"","new":"dead letters: 2"`)
}

// One that was enqueued again under its id is not replaced by the dead one.
func TestDeadReplayOfAJobThatIsThereAgain(t *testing.T) {
	r := throttletest.StartRedis(t)
	buried(t, r, map[string][]string{"k": {"a"}})
	line(t, openAt(t, r), "k", "a")
	code, out, stderr := try(t, r, "dead", "replay", "k", "a")
	require.Equal(t, exitInvalid, code)
	require.Empty(t, out)
	require.Equal(t, `throttled: replay job "a" of key "k": a job with this id has not ended: it is waiting, not dead`+"\n", stderr)
	require.Equal(t, "k: 0 dead letters replayed\n", ask(t, r, "dead", "replay", "k", "--all"))
}

// What is not dead cannot be thrown away as that.
func TestDeadDiscardOfAJobThatIsAlive(t *testing.T) {
	r := throttletest.StartRedis(t)
	line(t, openAt(t, r), "k", "a")
	code, out, stderr := try(t, r, "dead", "discard", "k", "a", "b")
	require.Equal(t, exitInvalid, code)
	require.Empty(t, out)
	require.Equal(t, `throttled: discard job "a" of key "k": a job with this id has not ended: it is waiting, not dead`+"\n"+
		`throttled: discard job "b" of key "k": no such job`+"\n", stderr)
	require.Equal(t, []string{"a"}, idsOf(t, r, "k"))
}

func TestDeadDiscard(t *testing.T) {
	r := throttletest.StartRedis(t)
	buried(t, r, map[string][]string{"k": {"a", "b"}, "other": {"x", "y"}})
	require.Equal(t, text(`{"key":"k","id":"a","outcome":"discarded"}`), ask(t, r, "dead", "discard", "k", "a", "--json"))
	code, _, _ := try(t, r, "dead", "discard", "k", "a")
	require.Equal(t, exitInvalid, code)
	code, _, _ = try(t, r, "dead", "discard", "k", "--all")
	require.Equal(t, exitInvalid, code)
	require.Contains(t, ask(t, r, "dead", "list", "k", "--json"), `"id":"b"`, "not without --yes")
	require.Equal(t, "k: 1 dead letter discarded\n", ask(t, r, "dead", "discard", "k", "--all", "--yes"))
	require.Equal(t, "2 dead letters discarded\n", ask(t, r, "dead", "discard", "--all", "--yes", "--by", "ann"))
	require.Empty(t, ask(t, r, "dead", "list", "--json"))
	require.Contains(t, ask(t, r, "trail", "--json"), `"who":"ann","what":"discard","name":"*","old":"","new":"dead letters: 2"`)
}
