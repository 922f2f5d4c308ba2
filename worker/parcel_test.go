package worker

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestParcelComesOutAsItWentIn(t *testing.T) {
	for name, jobs := range map[string][]throttle.Hold{
		"one":       {{Key: "billing", ID: "evt_1", Release: 1, Shard: 15}},
		"odd keys":  {{Key: "a{b}c", ID: "1", Release: 1}, {Key: "a b:c", ID: "2", Release: 2}, {Key: "é\x00\n<&>\u2028", ID: "~!\"", Release: 3}},
		"far ahead": {{Key: "k", ID: "x", Release: math.MaxInt64}, {Key: "k", ID: "y", Release: 1<<53 + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			payload, err := encodeParcel(jobs)
			require.NoError(t, err)
			back, err := decodeParcel(payload, 16)
			require.NoError(t, err)
			require.Equal(t, jobs, back)
		})
	}
}

func TestParcelThatIsNoneIsRefused(t *testing.T) {
	for _, payload := range []string{
		``, `}{`, `{}`, `"a"`, `1`, `[1]`, `["k","x",1]`, `[null]`, `[[]]`, `[["k","x"]]`, `[["k","x",1]]`, `[["k","x",1,2,3]]`, `[["k","x",1,16]]`, `[["k","x",1,-1]]`, `[["k","x",1,"2"]]`,
		`[["","x",1,0]]`, `[["k","",1,0]]`, `[[null,"x",1,0]]`, `[["k","x","1",0]]`, `[["k","x",1.5,0]]`, `[["k","x",1,0]]x`,
		`[["k","x",9223372036854775808,0]]`,
	} {
		_, err := decodeParcel([]byte(payload), 16)
		require.Error(t, err, payload)
	}
}

func FuzzDecodeParcel(f *testing.F) {
	f.Add([]byte(`[["billing","evt_1",1,0],["a b","evt_2",12,15]]`))
	f.Add([]byte(`[["\u0000\ud800","~",-9223372036854775808,3]]`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`[["k","x",null]]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		jobs, err := decodeParcel(payload, 16)
		if err != nil {
			return
		}
		for _, j := range jobs {
			require.NotEmpty(t, j.Key)
			require.NotEmpty(t, j.ID)
		}
		again, err := encodeParcel(jobs)
		require.NoError(t, err)
		back, err := decodeParcel(again, 16)
		require.NoError(t, err)
		require.Equal(t, jobs, back)
	})
}
