package throttle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseOpening(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		text string
		want Opening
		back string // empty: the same text
	}{
		{"09:00-18:00", Opening{From: 9 * h, To: 18 * h}, ""},
		{"00:00-24:00", Opening{To: 24 * h}, ""},
		{"18:30-24:00", Opening{From: 18*h + 30*time.Minute, To: 24 * h}, ""},
		{"18:30-00:00", Opening{From: 18*h + 30*time.Minute}, ""},
		{"23:59-00:01", Opening{From: 24*h - time.Minute, To: time.Minute}, ""},
		{"mon-fri 09:00-18:00", Opening{Days: []time.Weekday{1, 2, 3, 4, 5}, From: 9 * h, To: 18 * h}, ""},
		{"sat,sun 22:00-02:00", Opening{Days: []time.Weekday{6, 0}, From: 22 * h, To: 2 * h}, ""},
		{"sun 00:00-24:00", Opening{Days: []time.Weekday{0}, To: 24 * h}, ""},
		{"Mon,TUE 01:00-02:00", Opening{Days: []time.Weekday{1, 2}, From: h, To: 2 * h}, "mon,tue 01:00-02:00"},
		{"mon,tue,wed,fri 01:00-02:00", Opening{Days: []time.Weekday{1, 2, 3, 5}, From: h, To: 2 * h}, "mon-wed,fri 01:00-02:00"},
		{"sun,mon,mon,sun 01:00-02:00", Opening{Days: []time.Weekday{1, 0}, From: h, To: 2 * h}, "mon,sun 01:00-02:00"},
		{"fri-mon 01:00-02:00", Opening{Days: []time.Weekday{1, 5, 6, 0}, From: h, To: 2 * h}, "mon,fri-sun 01:00-02:00"},
		{"tue-tue 01:00-02:00", Opening{Days: []time.Weekday{2}, From: h, To: 2 * h}, "tue 01:00-02:00"},
		{"mon-sun 01:00-02:00", Opening{From: h, To: 2 * h}, "01:00-02:00"},
		{"wed-tue 01:00-02:00", Opening{From: h, To: 2 * h}, "01:00-02:00"},
	} {
		got, err := ParseOpening(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
		require.NoError(t, got.Validate())
		if c.back == "" {
			c.back = c.text
		}
		require.Equal(t, c.back, got.String())
	}
}

func TestParseOpeningRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "-", "mon", "mon-fri", "09:00", "09:00-", "-18:00", "9:00-18:00", "09:00-18:0", "09:00-18:60", "09:00-24:01", "09:00-25:00",
		"24:00-01:00", "24:00-24:00", "09:00-09:00", "00:00-00:00", "09:00–18:00", "09:00 - 18:00", "09:00-18:00 ", " 09:00-18:00",
		"mon  09:00-18:00", "mon 09:00-18:00 x", "mo 09:00-18:00", "monday 09:00-18:00", "mon,, 09:00-18:00", ",mon 09:00-18:00",
		"mon- 09:00-18:00", "mon-fri-sun 09:00-18:00", "mon, tue 09:00-18:00", "+9:00-18:00", "09.00-18.00", "09:00-18:00-19:00", "0٩:00-18:00",
	} {
		o, err := ParseOpening(text)
		var e *InvalidError
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, "opening", e.Field)
		require.Equal(t, text, e.Value)
		require.NotEmpty(t, e.Allowed)
		require.Zero(t, o)
	}
}

func FuzzParseOpening(f *testing.F) {
	for _, text := range []string{"mon-fri 09:00-18:00", "09:00-18:00", "sat,sun 22:00-02:00", "24:00-24:00", "mon- 1-2", ",,", "fri-mon,tue 23:59-00:00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseOpening(text)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			return
		}
		require.NoError(t, o.Validate())
		again, err := ParseOpening(o.String())
		require.NoError(t, err)
		require.Equal(t, o, again)
		require.Equal(t, o.String(), again.String())
	})
}

func TestHoursBounds(t *testing.T) {
	const h = time.Hour
	require.NoError(t, Hours{Open: []Opening{{To: h}}}.Validate())
	require.NoError(t, Hours{Zone: "America/New_York", Open: slices.Repeat([]Opening{{Days: []time.Weekday{0, 6, 6}, From: 22 * h}}, MaxOpenings)}.Validate())
	for field, hours := range map[string][]Hours{
		"open": {{}, {Open: slices.Repeat([]Opening{{To: h}}, MaxOpenings+1)}},
		"zone": {{Zone: "Nowhere", Open: []Opening{{To: h}}}, {Zone: "Local", Open: []Opening{{To: h}}}},
		"open[1].days": {
			{Open: []Opening{{To: h}, {Days: []time.Weekday{7}, To: h}}}, {Open: []Opening{{To: h}, {Days: []time.Weekday{1, -1}, To: h}}},
		},
		"open[0].from": {
			{Open: []Opening{{From: -h, To: h}}}, {Open: []Opening{{From: 24 * h, To: h}}}, {Open: []Opening{{From: h + time.Second, To: h}}},
		},
		"open[0].to": {
			{Open: []Opening{{}}}, {Open: []Opening{{From: h, To: h}}}, {Open: []Opening{{From: h, To: 25 * h}}},
			{Open: []Opening{{From: h, To: -h}}}, {Open: []Opening{{From: h, To: 2*h + 1}}},
		},
	} {
		for _, h := range hours {
			var e *InvalidError
			require.ErrorAs(t, h.Validate(), &e, "%v", h)
			require.Equal(t, field, e.Field)
			require.NotEmpty(t, e.Allowed)
		}
	}
}

func TestWeekMinutes(t *testing.T) {
	const d = minutesPerDay
	for _, c := range []struct {
		open []string
		want []int
	}{
		{[]string{"00:00-24:00"}, []int{0, 7 * d}},
		{[]string{"mon 00:00-00:01"}, []int{0, 1}},
		{[]string{"sun 23:00-24:00"}, []int{7*d - 60, 7 * d}},
		{[]string{"sun 23:00-00:00"}, []int{7*d - 60, 7 * d}},
		{[]string{"sun 22:00-02:00"}, []int{0, 120, 7*d - 120, 7 * d}},
		{[]string{"sat,sun 22:00-02:00"}, []int{0, 120, 6*d - 120, 6*d + 120, 7*d - 120, 7 * d}},
		{[]string{"mon,tue 09:00-18:00"}, []int{540, 1080, d + 540, d + 1080}},
		{[]string{"tue 09:00-18:00", "mon 09:00-18:00", "mon 12:00-13:00"}, []int{540, 1080, d + 540, d + 1080}},
		{[]string{"mon 09:00-12:00", "mon 12:00-18:00", "mon 17:00-19:00"}, []int{540, 1140}},
		{[]string{"mon,tue 00:00-24:00"}, []int{0, 2 * d}},
		{[]string{"mon 12:00-11:59", "tue 11:59-12:00"}, []int{720, d + 720}},
	} {
		require.Equal(t, c.want, hours(t, "", c.open...).weekMinutes(), "%v", c.open)
	}
}

func hours(t require.TestingT, zone string, open ...string) Hours {
	h := Hours{Zone: zone}
	for _, text := range open {
		o, err := ParseOpening(text)
		require.NoError(t, err)
		h.Open = append(h.Open, o)
	}
	return h
}

// A minute of the week is open if an opening that began on its day or the day before
// has it; the list is sorted, within the week and without spans that touch.
func TestWeekMinutesHaveWhatIsOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Hours{Open: rapid.SliceOfN(drawOpening(), 1, 5).Draw(t, "open")}
		minutes := h.weekMinutes()
		require.Zero(t, len(minutes)%2)
		last := -1
		for _, m := range minutes {
			require.Greater(t, m, last, "%v", minutes)
			last = m
		}
		require.LessOrEqual(t, last, minutesPerWeek)

		for range 50 {
			m := rapid.IntRange(0, minutesPerWeek-1).Draw(t, "minute")
			if rapid.Bool().Draw(t, "at an edge") {
				m = min(rapid.SampledFrom(minutes).Draw(t, "edge"), minutesPerWeek-1)
			}
			listed := false
			for i := 0; i < len(minutes); i += 2 {
				listed = listed || minutes[i] <= m && m < minutes[i+1]
			}
			require.Equal(t, slices.ContainsFunc(h.Open, func(o Opening) bool { return isOpen(o, m) }), listed, "minute %d of %v", m, h.Open)
		}
	})
}

// isOpen asks one opening about a minute of the week, by its definition.
func isOpen(o Opening, minute int) bool {
	begins := func(weekday int) bool { // 0 is Monday
		return len(o.Days) == 0 || slices.Contains(o.Days, time.Weekday((weekday+1)%7))
	}
	today, at := minute/minutesPerDay, time.Duration(minute%minutesPerDay)*time.Minute
	if o.From < o.To {
		return begins(today) && o.From <= at && at < o.To
	}
	return begins(today) && at >= o.From || begins((today+6)%7) && at < o.To
}

func drawOpening() *rapid.Generator[Opening] {
	return rapid.Custom(func(t *rapid.T) Opening {
		from := rapid.IntRange(0, minutesPerDay-1).Draw(t, "from")
		to := rapid.IntRange(0, minutesPerDay).Filter(func(m int) bool { return m != from }).Draw(t, "to")
		return Opening{
			Days: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Weekday {
				return time.Weekday(rapid.IntRange(0, 6).Draw(t, "day"))
			}), 0, 8).Draw(t, "days"),
			From: time.Duration(from) * time.Minute, To: time.Duration(to) * time.Minute,
		}
	})
}

func TestOpeningsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOpening().Draw(t, "opening")
		require.NoError(t, o.Validate())
		given := fmt.Sprint(o.Days)
		back, err := ParseOpening(o.String())
		require.NoError(t, err, o.String())
		require.Equal(t, o.normal(), back)
		require.Equal(t, given, fmt.Sprint(o.Days), "the caller's days are left as they are")
	})
}
