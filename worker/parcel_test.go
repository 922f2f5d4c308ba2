package worker

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestParcelComesOutAsItWentIn(t *testing.T) {
	for name, jobs := range map[string][]throttle.Hold{
		"one":       {{Key: "billing", ID: "evt_1", Release: 1}},
		"odd keys":  {{Key: "a{b}c", ID: "1", Release: 1}, {Key: "a b:c", ID: "2", Release: 2}, {Key: "é\x00\n<&>\u2028", ID: "~!\"", Release: 3}},
		"far ahead": {{Key: "k", ID: "x", Release: math.MaxInt64}, {Key: "k", ID: "y", Release: 1<<53 + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			payload, err := encodeParcel(jobs)
			require.NoError(t, err)
			back, err := decodeParcel(payload)
			require.NoError(t, err)
			require.Equal(t, jobs, back)
		})
	}
}

func TestParcelThatIsNoneIsRefused(t *testing.T) {
	for _, payload := range []string{
		``, `}{`, `{}`, `"a"`, `1`, `[1]`, `["k","x",1]`, `[null]`, `[[]]`, `[["k","x"]]`, `[["k","x",1,2]]`,
		`[["","x",1]]`, `[["k","",1]]`, `[[null,"x",1]]`, `[["k","x","1"]]`, `[["k","x",1.5]]`, `[["k","x",1]]x`,
		`[["k","x",9223372036854775808]]`,
	} {
		_, err := decodeParcel([]byte(payload))
		require.Error(t, err, payload)
	}
}

func FuzzDecodeParcel(f *testing.F) {
	f.Add([]byte(`[["billing","evt_1",1],["a b","evt_2",12]]`))
	f.Add([]byte(`[["\u0000\ud800","~",-9223372036854775808]]`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`[["k","x",null]]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		jobs, err := decodeParcel(payload)
		if err != nil {
			return
		}
		for _, j := range jobs {
			require.NotEmpty(t, j.Key)
			require.NotEmpty(t, j.ID)
		}
		again, err := encodeParcel(jobs)
		require.NoError(t, err)
		back, err := decodeParcel(again)
		require.NoError(t, err)
		require.Equal(t, jobs, back)
	})
}
