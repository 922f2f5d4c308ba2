package httpjob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

var filled = Defaults{Key: "k", URL: "http://a"}

// outcomes reads to the end and tells each line as its id, or as an error.
func outcomes(t *testing.T, r *Reader) []string {
	t.Helper()
	var all []string
	for {
		j, err := r.Next()
		var at *LineError
		switch {
		case errors.Is(err, io.EOF):
			_, again := r.Next()
			require.ErrorIs(t, again, io.EOF)
			return all
		case errors.As(err, &at):
			require.Equal(t, at.Line, r.Line())
			all = append(all, err.Error())
		default:
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("%d %s", r.Line(), j.ID))
		}
	}
}

func TestReaderGoesOnAfterABadLine(t *testing.T) {
	const text = "\xef\xbb\xbf{\"id\":\"a\"}\r\n\n \t\r\n{bad\n{\"id\":\"b\"}\r\n{\"id\":\"\"}\n\r\n{\"id\":\"c\"}"
	want := []string{
		"1 a",
		"line 4, column 2: not valid JSON: invalid character 'b' looking for beginning of object key string",
		"5 b",
		`line 6, column 7: id "" is not allowed: want a text that is not empty, or no such field`,
		"8 c",
	}
	for name, in := range map[string]io.Reader{
		"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "error with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(in, filled, 0)
			require.Equal(t, want, outcomes(t, r))
			require.EqualValues(t, len(text), r.Offset())
			require.Empty(t, r.Unknown())
		})
	}
}

func TestReaderOfNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "\xef\xbb\xbf", "\r\n\r\n", "  "} {
		require.Empty(t, outcomes(t, NewReader(strings.NewReader(text), filled, 0)))
	}
}

func TestReaderRefusesLongLines(t *testing.T) {
	line := func(length int) string {
		s := `{"id":"a","body":""}`
		return strings.Replace(s, `""`, `"`+strings.Repeat("x", length-len(s))+`"`, 1)
	}
	const bound = 1000
	for _, end := range []string{"\n", "\r\n"} {
		for _, start := range []string{"", "\xef\xbb\xbf"} {
			text := start + line(bound) + end + line(bound+1) + end + line(200_000) + end + line(bound) + end + line(bound+1)
			require.Equal(t,
				[]string{"1 a", "line 2: longer than 1000 bytes", "line 3: longer than 1000 bytes", "4 a", "line 5: longer than 1000 bytes"},
				outcomes(t, NewReader(strings.NewReader(text), filled, bound)))
		}
	}
}

// endless gives n bytes of one line.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	copy(p, bytes.Repeat([]byte("x"), n))
	e.n -= n
	return n, nil
}

func TestReaderDoesNotHoldALongLine(t *testing.T) {
	const length = 100 << 20
	r := NewReader(io.MultiReader(&endless{length}, strings.NewReader("\n{\"id\":\"a\"}\n")), filled, 1<<20)
	_, err := r.Next()
	require.EqualError(t, err, "line 1: longer than 1048576 bytes")
	require.Less(t, cap(r.buf), 4<<20)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	require.Less(t, m.HeapAlloc, uint64(length/4))
	require.Equal(t, []string{"2 a"}, outcomes(t, r))
}

func TestReaderEndsWithTheErrorOfItsInput(t *testing.T) {
	broken := errors.New("disk is gone")
	r := NewReader(io.MultiReader(strings.NewReader("{}\n{\"id\":"), iotest.ErrReader(broken)), filled, 0)
	_, err := r.Next()
	require.NoError(t, err)
	for range 2 {
		_, err = r.Next()
		require.ErrorIs(t, err, broken)
		var at *LineError
		require.NotErrorAs(t, err, &at)
	}
	require.Equal(t, 1, r.Line())
}

func TestReaderRemembersUnknownFields(t *testing.T) {
	r := NewReader(strings.NewReader("{\"event\":1,\"weight\":2}\n{\"Key\":\"x\",\"event\":{}}\n"), filled, 0)
	require.Len(t, outcomes(t, r), 2)
	require.Equal(t, []string{"Key", "event", "weight"}, r.Unknown())

	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "{\"f%03d%s\":0}\n", i, strings.Repeat("x", 1000))
	}
	r = NewReader(strings.NewReader(many.String()), filled, 0)
	require.Len(t, outcomes(t, r), 1000)
	require.Len(t, r.Unknown(), maxUnknown)
	require.Less(t, len(r.Unknown()[0]), 100)
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"id\":\"a\",\"payload\":{ \"x\" : \"\\ud800\" }}\r\n\n{bad\n{}"), true)
	f.Add([]byte("\xef\xbb\xbf{\"key\":\"k\",\"url\":\"http://a\",\"headers\":{\"A\":\"b\"},\"cost\":1,\"delay\":\"1s\"}\n"), false)
	f.Add([]byte("{\"body\":\"\\\\ud800\"}\n{\"body_base64\":\"AP8=\"}\n{\"key\":\"\\ud83d\\ude00\"}"), true)
	f.Add([]byte("{\"priority\":9,\"ttl\":\"1h\",\"deadline\":\"2026-12-01T06:00:00Z\",\"not_before\":\"0001-01-01T00:00:00Z\","+
		"\"dedupe\":{\"name\":\"n\",\"debounce\":\"1s\",\"max_debounce\":\"2s\"}}\n{\"dedupe\":{\"content\":true,\"window\":\"1s\"}}"), true)
	f.Add([]byte("{\"a\":[[[[\n\xff\n\"\n"), true)
	f.Fuzz(func(t *testing.T, text []byte, withDefaults bool) {
		var d Defaults
		if withDefaults {
			d = filled
		}
		const maxLine = 300
		r := NewReader(bytes.NewReader(text), d, maxLine)
		last := 0
		for {
			j, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.Greater(t, r.Line(), last, "each line once, in order")
			last = r.Line()
			var at *LineError
			if errors.As(err, &at) {
				require.Equal(t, last, at.Line)
				require.LessOrEqual(t, at.Column, maxLine+1)
				require.NotEmpty(t, at.Error())
				continue
			}
			require.NoError(t, err)
			require.NoError(t, j.Validate(throttle.DefaultMaxJobSize), "accepted jobs are valid")
			_, err = Parse(j.Headers, j.Payload)
			require.NoError(t, err, "and their calls too")
		}
		require.LessOrEqual(t, last, bytes.Count(text, []byte("\n"))+1)
		require.EqualValues(t, len(text), r.Offset())
	})
}
