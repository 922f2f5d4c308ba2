package throttletest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

const (
	ms       = time.Millisecond
	patience = 30 * time.Second // of a test that waits for what takes a moment
)

var noon = time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)

// A timeline makes up the events of the key "k", numbered from 0.
type timeline []throttletest.Event

// at adds n events of one cost at one instant.
func (l timeline) at(after time.Duration, n int, cost int64) timeline {
	for range n {
		l = append(l, throttletest.Event{Key: "k", ID: fmt.Sprint(len(l)), At: noon.Add(after), Cost: cost})
	}
	return l
}

// every adds n events of cost 1, one each gap, the first at after.
func (l timeline) every(after, gap time.Duration, n int) timeline {
	for i := range n {
		l = l.at(after+time.Duration(i)*gap, 1, 1)
	}
	return l
}

// ids gives the ids as they stand.
func (l timeline) ids() []string {
	var ids []string
	for _, e := range l {
		ids = append(ids, e.ID)
	}
	return ids
}

func limit(t *testing.T, rate string, burst int64) throttle.Limit {
	t.Helper()
	l, err := throttle.ParseLimit(rate, burst)
	require.NoError(t, err)
	return l
}

// measure reports on the key "k" alone. expected may be nil.
func measure(t *testing.T, l throttle.Limit, events timeline, expected []string) throttletest.Report {
	t.Helper()
	var want map[string][]string
	if expected != nil {
		want = map[string][]string{"k": expected}
	}
	reports, err := throttletest.Measure(map[string]throttle.Limit{"k": l}, events, want)
	require.NoError(t, err)
	require.Len(t, reports, 1)
	return reports[0]
}
