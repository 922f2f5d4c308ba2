package throttle

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // a machine that runs the tests may have no zones

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestZoneOffsets(t *testing.T) {
	const hour = int64(time.Hour / time.Microsecond)
	at := func(s string) int64 {
		instant, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return instant.UnixMicro()
	}
	for name, want := range map[string][]zoneOffset{ // the first of them
		"":                   {{at("2020-01-01T00:00:00Z"), 0}},
		"UTC":                {{at("2020-01-01T00:00:00Z"), 0}},
		"Asia/Kolkata":       {{at("2020-01-01T00:00:00Z"), 5*hour + hour/2}},
		"Asia/Kathmandu":     {{at("2020-01-01T00:00:00Z"), 5*hour + hour*3/4}},
		"Pacific/Kiritimati": {{at("2020-01-01T00:00:00Z"), 14 * hour}},
		"Europe/Berlin": {
			{at("2020-01-01T00:00:00Z"), hour}, {at("2020-03-29T01:00:00Z"), 2 * hour}, {at("2020-10-25T01:00:00Z"), hour},
		},
		"Europe/Dublin": {{at("2020-01-01T00:00:00Z"), 0}, {at("2020-03-29T01:00:00Z"), hour}},
		"America/St_Johns": {
			{at("2020-01-01T00:00:00Z"), -3*hour - hour/2}, {at("2020-03-08T05:30:00Z"), -2*hour - hour/2},
		},
		"Australia/Lord_Howe": {
			{at("2020-01-01T00:00:00Z"), 11 * hour}, {at("2020-04-04T15:00:00Z"), 10*hour + hour/2},
		},
	} {
		got, err := zoneOffsets(name)
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, len(got), len(want), name)
		require.Equal(t, want, got[:len(want)], name)
	}
	berlin, err := zoneOffsets("Europe/Berlin")
	require.NoError(t, err)
	require.Len(t, berlin, 1+2*80, "two changes a year until 2100")
	require.Equal(t, zoneOffset{at("2099-10-25T01:00:00Z"), hour}, berlin[160])
}

var someZones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "Africa/Casablanca", "Africa/Cairo",
	"Asia/Tehran", "Asia/Gaza", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Antarctica/Troll", "Etc/GMT+12",
}

// The offset of the last entry that is not in the future is what the zone's clocks
// show, at any instant and right at the changes.
func TestZoneOffsetsHoldAtEveryInstant(t *testing.T) {
	from, until := zonesFrom.UnixMicro(), zonesUntil.UnixMicro()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(someZones).Draw(t, "zone")
		offsets, err := zoneOffsets(name)
		require.NoError(t, err)
		require.Equal(t, from, offsets[0].From)
		instant := rapid.Int64Range(from, until-1).Draw(t, "instant")
		if rapid.Bool().Draw(t, "at a change") {
			change := rapid.SampledFrom(offsets).Draw(t, "change").From
			instant = min(max(change+rapid.Int64Range(-1, 1).Draw(t, "beside"), from), until-1)
		}
		var offset int64
		for i, o := range offsets {
			require.True(t, i == 0 || o.From > offsets[i-1].From && o.Offset != offsets[i-1].Offset, "%v after %v", o, offsets[max(0, i-1)])
			if o.From <= instant {
				offset = o.Offset
			}
		}
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		_, want := time.UnixMicro(instant).In(zone).Zone()
		require.Equal(t, int64(want)*1_000_000, offset)
	})
}

func TestUnknownZonesAreRefused(t *testing.T) {
	for _, name := range []string{
		"Local", "localtime", "Europe", "Europe/", "europe/berlin", "Nowhere", "../UTC", "/UTC", "right/Europe/Berlin",
		"posix/Europe/Berlin", "utc", "+01:00", "Europe/Berlin\x00", "\xff", "zone.tab",
	} {
		_, err := zoneOffsets(name)
		require.EqualError(t, err, (&InvalidError{"zone", name, "an IANA time zone such as Europe/Berlin, or UTC"}).Error())
	}
	_, err := zoneOffsets(strings.Repeat("E", 1<<20))
	require.EqualError(t, err, "zone 1048576 is not allowed: want an IANA time zone of at most 64 bytes")
}
