package throttle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistoryEntry(t *testing.T) {
	for text, want := range map[string]historyEntry{
		"p 5 10 1000000 1 100": {letter: "p", instant: 5, policy: "10 1000000 1 100"},
		"o 5 x":                {letter: "o", instant: 5, policy: "x"},
		"d 1700000000000000 3 2 0 4 - a k": {
			letter: "d", instant: 1700000000000000, cost: 3, run: 2, attempt: 4, id: "a", key: "k",
		},
		"d 1 1000000000 9007199254740992 7 1 f a  k {\n} ": {
			letter: "d", instant: 1, cost: MaxCost, run: maxInstant, missed: 7, attempt: 1, forced: true, id: "a", key: " k {\n} ",
		},
		"s 7 -3 2 a k": {letter: "s", instant: 7, off: -3, run: 2, id: "a", key: "k"},
	} {
		e, err := parseHistoryEntry(text)
		require.NoError(t, err, text)
		require.Equal(t, want, e, text)
	}
	for _, text := range []string{
		"", " ", "d", "x 1", "x 1 2 3 4 5", "p 5", "p 5 ", "p x 10 1000000 1 100", "p 9007199254740993 y",
		"d -1 3 2 0 4 - a k", "d 1 -1 2 0 4 - a k", "d 1 1000000001 2 0 4 - a k", "d 1 3 2 0 4 x a k", "d 1 3 2 0 4 - a", "d 1 3 2 0 4 - a ",
		"d 1 3 2 0 4 -  k", "d 1 3.5 2 0 4 - a k", "d 1e3 3 2 0 4 - a k", "d  1 3 2 0 4 - a k", "d 1 3 2 0",
		"s 7 - 2 a k", "s 7 1000000001 2 a k", "s 7 1 2 a",
	} {
		e, err := parseHistoryEntry(text)
		require.ErrorIs(t, err, errHistoryEntry, "%q", text)
		require.Equal(t, historyEntry{letter: e.letter}, e, "%q", text)
	}
}

// Whatever is read comes from one text alone, and nothing makes the reader fail.
func FuzzHistoryEntry(f *testing.F) {
	for _, text := range []string{"p 5 10 1000000 1 100", "o 5 x", "d 1 3 2 0 4 - a k", "d 1 3 2 9 4 f a k k", "s 7 -3 2 a k", "d 1 3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, _ := parseHistory("k", []string{"p 1 10 1000000 1 100", text, "d 1 3 2 0 4 - a k"})
		v := h.Verify()
		require.LessOrEqual(t, v.Damaged, 1)
		e, err := parseHistoryEntry(text)
		if err != nil {
			require.Equal(t, 1, v.Damaged)
			return
		}
		require.GreaterOrEqual(t, e.instant, int64(0))
		switch e.letter {
		case entryDepart:
			mark := map[bool]string{true: "f", false: "-"}[e.forced]
			again, err := parseHistoryEntry(fmt.Sprintf("d %d %d %d %d %d %s %s %s", e.instant, e.cost, e.run, e.missed, e.attempt, mark, e.id, e.key))
			require.NoError(t, err)
			require.Equal(t, e, again)
		case entrySettled:
			again, err := parseHistoryEntry(fmt.Sprintf("s %d %d %d %s %s", e.instant, e.off, e.run, e.id, e.key))
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
	})
}

func TestHistory(t *testing.T) {
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	h, err := parseHistory("k", []string{
		"p 100 10 1000000 1 100",
		"d 100 1 1 0 1 - a k",
		"d 300 5 1 0 1 - b other key",
		"d 500 1 2 1 1 - a k",
		"d 350 1 1 0 2 f c k",
		"s 400 -2 1 b other key",
		"s 450 3 2 a k",
		"s 460 3 9 gone k",
		"s 470 -3 9 gone k",
		"nonsense",
		"p 600 20 1000000 1 100",
		"d 600 1 1 0 1 - a k",
	})
	require.NoError(t, err)
	require.Equal(t, 1, h.Damaged)
	for i := range h.Departures {
		h.Departures[i].place = place{}
	}
	require.Equal(t, []Departure{
		{At: at(300), Key: "other key", ID: "b", Attempt: 1, Cost: 3, Run: 1},
		{At: at(350), Key: "k", ID: "c", Attempt: 2, Cost: 1, Run: 1, Forced: true},
		{At: at(500), Key: "k", ID: "a", Attempt: 1, Cost: 1, Run: 2},
		{At: at(600), Key: "k", ID: "a", Attempt: 1, Cost: 1, Run: 1},
	}, h.Departures)
	require.Len(t, h.Settlements, 2)
	require.Equal(t, place{at: 450, seq: 7}, h.Settlements[0].place)
	require.Equal(t, int64(3), h.Settlements[0].Off)
	require.Len(t, h.Policies, 2)
	require.Equal(t, "k", h.Policies[1].Policy.Key)
	require.Equal(t, at(600), h.Policies[1].At)
}

// The entry that told of the first policy is dropped with the oldest: the one at the
// change tells of it again.
func TestHistoryWithoutItsBeginning(t *testing.T) {
	h, err := parseHistory("k", []string{
		"d 100 1 1 0 1 - a k",
		"o 600 7 1000000 1 100",
		"p 600 20 1000000 1 100",
		"p bad",
		"d 900 1 1 0 1 - a k",
		"o 950 9 1000000 1 100",
	})
	require.NoError(t, err)
	require.Equal(t, 1, h.Damaged)
	require.Len(t, h.Policies, 3)
	for i, rate := range []int64{7, 20, 9} {
		require.Equal(t, rate, h.Policies[i].Policy.Limit.Rate)
		require.False(t, h.Policies[i].Unknown)
	}
	require.True(t, h.Policies[0].At.IsZero())
	require.Zero(t, h.Verify().Unjudged)
}

func TestHistoryThatNobodyCanRead(t *testing.T) {
	h, err := parseHistory("k", []string{"v2 1", "v2 2"})
	require.ErrorIs(t, err, errHistoryEntry)
	require.ErrorContains(t, err, `history of key "k": none of 2 entries can be read`)
	require.Equal(t, 2, h.Damaged)
	h, err = parseHistory("k", nil)
	require.NoError(t, err)
	require.Equal(t, History{Key: "k"}, h)
}
