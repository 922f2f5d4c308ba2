package throttletest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func threeKeys(t *testing.T) throttletest.Reports {
	t.Helper()
	var events []throttletest.Event
	for key, l := range map[string]timeline{
		"fair": timeline{}.every(0, 100*ms, 11),
		"slow": timeline{}.every(0, 200*ms, 6),
	} {
		for _, e := range l {
			e.Key = key
			events = append(events, e)
		}
	}
	l := limit(t, "10/s", 1)
	reports, err := throttletest.Measure(map[string]throttle.Limit{"fair": l, "slow": l, "none": l}, events, nil)
	require.NoError(t, err)
	return reports
}

func TestReportsAreSortedByKeyAndFoundByIt(t *testing.T) {
	reports := threeKeys(t)
	require.Equal(t, "fair", reports[0].Key)
	require.Equal(t, "none", reports[1].Key)
	require.Equal(t, "slow", reports[2].Key)

	slow, found := reports.Key("slow")
	require.True(t, found)
	require.InDelta(t, 5, slow.Achieved, 1e-9)
	_, found = reports.Key("other")
	require.False(t, found)
}

func TestReportsCheckNamesEveryKey(t *testing.T) {
	reports := threeKeys(t)
	err := reports.Check(throttletest.Bounds{MinRatio: 0.99})
	require.ErrorContains(t, err, `key "none", 10/s burst 1: ratio 0 is below`)
	require.ErrorContains(t, err, `key "slow", 10/s burst 1: ratio 0.5 is below`)
	require.NotContains(t, err.Error(), "fair")
	require.NoError(t, reports.Check(throttletest.Bounds{}))
}

func TestJainIndex(t *testing.T) {
	of := func(ratios ...float64) float64 {
		var rs throttletest.Reports
		for _, r := range ratios {
			rs = append(rs, throttletest.Report{Ratio: r})
		}
		return rs.JainIndex()
	}
	require.InDelta(t, 1, of(0.5, 0.5, 0.5), 1e-12)
	require.InDelta(t, 0.25, of(1, 0, 0, 0), 1e-12)
	require.InDelta(t, 0.9, of(1, 2), 1e-12)
	require.Zero(t, of(0, 0), "nobody got anything")
	require.Zero(t, of())
}

func TestTableShowsEveryKey(t *testing.T) {
	require.Equal(t, strings.Join([]string{
		"key   limit         count  cost  achieved/s  ratio   excess  gap p50   gap p99   gap max   lost  duplicated  unknown  out of order",
		"fair  10/s burst 1  11     11    10.00       1.0000  0.00    0.00ms    0.00ms    0.00ms    -     0           -        -",
		"none  10/s burst 1  0      0     0.00        0.0000  0.00    0.00ms    0.00ms    0.00ms    -     0           -        -",
		"slow  10/s burst 1  6      6     5.00        0.5000  0.00    100.00ms  100.00ms  100.00ms  -     0           -        -",
		"Jain index 0.6000 over 3 keys",
		"",
	}, "\n"), threeKeys(t).String())

	checked := measure(t, limit(t, "10/s", 1), timeline{}.at(0, 1, 1), []string{"0", "1"})
	require.Contains(t, throttletest.Reports{checked}.String(), "0.00ms   1     0           0        0\n")
}

func TestTableKeepsKeysInTheirCells(t *testing.T) {
	table := throttletest.Reports{
		{Key: "tab\tline\n\x1b[31m"}, {Key: strings.Repeat("ключ", 100)}, {Key: "plain é {x}:y"},
	}.String()
	require.Contains(t, table, `"tab\tline\n\x1b[31m"  `)
	require.Contains(t, table, strings.Repeat("ключ", 9)+"клю…  ")
	require.Contains(t, table, "plain é {x}:y  ")
	require.Equal(t, 5, strings.Count(table, "\n"), "head, three keys and the index")
}

type brokenWriter struct{}

var errBroken = errors.New("broken pipe")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestTableTellsThatItCouldNotBeWritten(t *testing.T) {
	require.ErrorIs(t, threeKeys(t).WriteTable(brokenWriter{}), errBroken)
}

func TestReportRoundTripsThroughJSON(t *testing.T) {
	events := timeline{}.at(0, 2, 1).at(100*ms, 1, 1)
	events[1].ID = "0"
	want := measure(t, limit(t, "10/s", 1), events, []string{"0", "9"})
	text, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"key": "k", "limit": "10/s burst 1", "count": 3, "cost": 3,
		"from": "2024-02-29T12:00:00Z", "span_ns": 100000000,
		"configured_per_second": 10, "achieved_per_second": 20, "ratio": 2,
		"excess": 1, "excess_window": {"from": "2024-02-29T12:00:00Z", "to": "2024-02-29T12:00:00Z", "cost": 2},
		"gaps": 2, "gap_p50_ns": 0, "gap_p99_ns": 100000000, "gap_max_ns": 100000000,
		"ids_checked": true, "lost": ["9"], "duplicated": ["0"], "unknown": ["2"], "out_of_order": 0
	}`, string(text))

	var got throttletest.Report
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, want, got)
}
