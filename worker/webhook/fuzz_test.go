package webhook

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzParseSecret(f *testing.F) {
	for _, text := range []string{symmetricText, "whsk_" + encode(32), "whsk_" + encode(64), "whpk_" + encode(32), "v1,whsec_", "whsec_=", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSecret(text)
		if err != nil {
			require.True(t, s.IsZero())
			if len(text) > 20 {
				require.NotContains(t, err.Error(), text[8:])
			}
			return
		}
		require.True(t, s.Equal(parse(t, s.Text())))
		require.NotContains(t, s.String(), text[7:])
	})
}

// Nothing but what was signed is verified.
func FuzzVerify(f *testing.F) {
	secret, at := parse(f, symmetricText), time.Unix(1700000000, 0)
	const id, stamp, signature, body = "msg_2b7f", "1700000000", "v1,RhA/n7wmqLe/lVct+i7NRL/vsPdFdOuK7G8MLIVMF7I=", `{"a":1,"b":"é<&>"}`
	f.Add(id, stamp, signature, body)
	f.Add(id, "01700000000", signature, body)
	f.Add(id+".1700000000", stamp, signature, body)
	f.Add(id, stamp, "v1a, v1, "+signature, body)
	v, err := NewVerifier(secret)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, i, s, sig, b string) {
		h := map[string][]string{"Webhook-Id": {i}, "Webhook-Timestamp": {s}, "Webhook-Signature": {sig}}
		genuine := i == id && s == stamp && b == body && strings.Contains(sig, signature)
		if err := v.Verify(h, []byte(b), at); err == nil {
			require.True(t, genuine)
		}
	})
}
