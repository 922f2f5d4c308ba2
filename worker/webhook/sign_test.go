package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

func TestSignaturesOfKnownMessages(t *testing.T) {
	for name, c := range map[string]struct {
		secret, id string
		at         int64
		body, want string
	}{
		"symmetric": {
			symmetricText, "msg_2b7f", 1700000000, `{"a":1,"b":"é<&>"}`,
			"v1,RhA/n7wmqLe/lVct+i7NRL/vsPdFdOuK7G8MLIVMF7I=",
		},
		"symmetric without padding": {
			strings.TrimRight(symmetricText, "="), "msg_2b7f", 1700000000, `{"a":1,"b":"é<&>"}`,
			"v1,RhA/n7wmqLe/lVct+i7NRL/vsPdFdOuK7G8MLIVMF7I=",
		},
		"of the reference library": {
			"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`,
			"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
		},
		"of the reference library, ed25519": {
			"whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk=", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, `{"test": 2432232314}`,
			"v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Sign(c.id, time.Unix(c.at, 999_999_999), []byte(c.body), parse(t, c.secret))
			require.NoError(t, err)
			require.Equal(t, c.want, h.Get("webhook-signature"))
			require.Equal(t, c.id, h.Get("webhook-id"))
			require.Len(t, h, 3)
		})
	}
}

func TestEachSecretSigns(t *testing.T) {
	body := []byte{0, 0xff, '\n'}
	private, symmetric := NewPrivateKey(), NewSecret()
	h, err := Sign("msg_1", time.Now(), body, symmetric, private)
	require.NoError(t, err)
	signatures := strings.Split(h.Get(SignatureHeader), " ")
	require.Len(t, signatures, 2)
	require.True(t, strings.HasPrefix(signatures[0], "v1,"))
	encoded, ok := strings.CutPrefix(signatures[1], "v1a,")
	require.True(t, ok)
	signature, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	content := "msg_1." + h.Get(TimestampHeader) + "." + string(body)
	require.True(t, ed25519.Verify(private.get().public, []byte(content), signature))

	// What others have written agrees.
	reference, err := standardwebhooks.NewWebhook(symmetric.Text())
	require.NoError(t, err)
	require.NoError(t, reference.Verify(body, h))
}

func TestWhatCannotBeSigned(t *testing.T) {
	public, _ := NewPrivateKey().Public()
	good, now := parse(t, symmetricText), time.Unix(1700000000, 0)
	const allowedID = " is not allowed: want 1 to 128 printable ASCII bytes without spaces and full stops"
	for name, c := range map[string]struct {
		id      string
		at      time.Time
		secrets []Secret
		want    string
	}{
		"no id":       {"", now, []Secret{good}, `webhook-id ""` + allowedID},
		"full stop":   {"a.1", now, []Secret{good}, `webhook-id "a.1"` + allowedID},
		"line end":    {"a\r\nb", now, []Secret{good}, `webhook-id "a\r\nb"` + allowedID},
		"umlaut":      {"ä", now, []Secret{good}, `webhook-id "ä"` + allowedID},
		"long id":     {strings.Repeat("a", 129), now, []Secret{good}, `webhook-id "` + strings.Repeat("a", 64) + `…"` + allowedID},
		"no time":     {"a", time.Time{}, []Secret{good}, `webhook-timestamp "0001-01-01T00:00:00Z" is not allowed: want a time from 1970 on`},
		"no secret":   {"a", now, nil, "secrets 0 is not allowed: want at least one to sign with"},
		"public key":  {"a", now, []Secret{good, public}, "secrets[1] whpk_*** is not allowed: want one that can sign: whsec_… or whsk_…"},
		"zero secret": {"a", now, []Secret{{}}, "secrets[0] none is not allowed: want one that can sign: whsec_… or whsk_…"},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Sign(c.id, c.at, nil, c.secrets...)
			require.EqualError(t, err, c.want)
			require.Equal(t, http.Header(nil), h)
		})
	}
}
