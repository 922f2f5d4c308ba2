package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func verifier(t *testing.T, secrets ...Secret) *Verifier {
	t.Helper()
	v, err := NewVerifier(secrets...)
	require.NoError(t, err)
	return v
}

func TestVerify(t *testing.T) {
	now := time.Unix(1700000000, 0)
	body := []byte(`{"a":1}`)
	old, current, private := NewSecret(), NewSecret(), NewPrivateKey()
	public, _ := private.Public()
	for name, c := range map[string]struct {
		signWith, knows []Secret
		change          func(h http.Header, body *[]byte)
		now             time.Duration // from the signature's
		tolerance       time.Duration
		want            error
	}{
		"genuine":                     {signWith: []Secret{current}},
		"ed25519, public key":         {signWith: []Secret{private}, knows: []Secret{public}},
		"ed25519, private key":        {signWith: []Secret{private}, knows: []Secret{private}},
		"any that is known":           {signWith: []Secret{current}, knows: []Secret{old, public, current}},
		"any that signed":             {signWith: []Secret{old, private, current}},
		"another secret":              {signWith: []Secret{old}, want: ErrSignature},
		"another key":                 {signWith: []Secret{NewPrivateKey()}, knows: []Secret{public}, want: ErrSignature},
		"symmetric for a private key": {signWith: []Secret{current}, knows: []Secret{public}, want: ErrSignature},
		"as old as may be":            {signWith: []Secret{current}, now: 300 * time.Second},
		"too old":                     {signWith: []Secret{current}, now: 301 * time.Second, want: ErrTooOld},
		"as new as may be":            {signWith: []Secret{current}, now: -300 * time.Second},
		"too new":                     {signWith: []Secret{current}, now: -301 * time.Second, want: ErrTooNew},
		"too old for less":            {signWith: []Secret{current}, now: 11 * time.Second, tolerance: 10 * time.Second, want: ErrTooOld},
		"a negative tolerance":        {signWith: []Secret{current}, now: 10 * time.Second, tolerance: -1},
		"changed body":                {signWith: []Secret{current}, change: func(_ http.Header, b *[]byte) { *b = []byte(`{"a":2}`) }, want: ErrSignature},
		"changed id":                  {signWith: []Secret{current}, change: set(IDHeader, "msg_2"), want: ErrSignature},
		"changed time":                {signWith: []Secret{current}, change: set(TimestampHeader, "1700000001"), want: ErrSignature},
		"no id":                       {signWith: []Secret{current}, change: set(IDHeader), want: ErrHeaders},
		"no time":                     {signWith: []Secret{current}, change: set(TimestampHeader), want: ErrHeaders},
		"no signature":                {signWith: []Secret{current}, change: set(SignatureHeader), want: ErrHeaders},
		"blank signature":             {signWith: []Secret{current}, change: set(SignatureHeader, "  "), want: ErrHeaders},
		"two ids":                     {signWith: []Secret{current}, change: set(IDHeader, "msg_1", "msg_2"), want: ErrHeaders},
		"two times":                   {signWith: []Secret{current}, change: set(TimestampHeader, "1700000000", "1700000000"), want: ErrHeaders},
		"full stop in the id":         {signWith: []Secret{current}, change: set(IDHeader, "msg_1.1700000000"), want: ErrHeaders},
		"time with a sign":            {signWith: []Secret{current}, change: set(TimestampHeader, "+1700000000"), want: ErrHeaders},
		"time with a fraction":        {signWith: []Secret{current}, change: set(TimestampHeader, "1700000000.0"), want: ErrHeaders},
		"negative time":               {signWith: []Secret{current}, change: set(TimestampHeader, "-1"), want: ErrHeaders},
		"time far away":               {signWith: []Secret{current}, change: set(TimestampHeader, "253402300799"), want: ErrTooNew},
		"time that wraps round":       {signWith: []Secret{current}, change: set(TimestampHeader, "9223372036854775807"), want: ErrHeaders},
		"time without end":            {signWith: []Secret{current}, change: set(TimestampHeader, strings.Repeat("9", 30)), want: ErrHeaders},
		"signature of no version":     {signWith: []Secret{current}, change: set(SignatureHeader, "RhA/n7wmqLe/lVct+i7NRL/vsPdFdOuK7G8MLIVMF7I="), want: ErrSignature},
		"empty signatures":            {signWith: []Secret{current}, knows: []Secret{current, public}, change: set(SignatureHeader, "v1, v1a,"), want: ErrSignature},
		"in a second line": {signWith: []Secret{current}, change: func(h http.Header, _ *[]byte) {
			h[http.CanonicalHeaderKey(SignatureHeader)] = []string{"v2,x", h.Get(SignatureHeader)}
		}},
		"behind very many": {signWith: []Secret{current}, change: func(h http.Header, _ *[]byte) {
			h.Set(SignatureHeader, strings.Repeat("v1,x ", maxSignatures)+h.Get(SignatureHeader))
		}, want: ErrSignature},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Sign("msg_1", now, body, c.signWith...)
			require.NoError(t, err)
			got := body
			if c.change != nil {
				c.change(h, &got)
			}
			if c.knows == nil {
				c.knows = []Secret{current}
			}
			v := verifier(t, c.knows...)
			v.Tolerance = c.tolerance
			err = v.Verify(h, got, now.Add(c.now))
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			for _, signature := range strings.Fields(h.Get(SignatureHeader)) {
				if len(signature) > 20 {
					require.NotContains(t, err.Error(), signature[3:20])
				}
			}
			for _, s := range c.knows {
				require.NotContains(t, err.Error(), s.Text())
				if s.CanSign() {
					// What would have been right is not told to whoever asks.
					right, err2 := Sign("msg_1", now, got, s)
					require.NoError(t, err2)
					require.NotContains(t, err.Error(), right.Get(SignatureHeader)[4:])
				}
			}
		})
	}
}

func set(name string, values ...string) func(http.Header, *[]byte) {
	return func(h http.Header, _ *[]byte) { h[http.CanonicalHeaderKey(name)] = values }
}

func TestAVerifierNeedsSecrets(t *testing.T) {
	_, err := NewVerifier()
	require.EqualError(t, err, "secrets 0 is not allowed: want at least one to verify with")
	_, err = NewVerifier(NewSecret(), Secret{})
	require.EqualError(t, err, "secrets[1] none is not allowed: want one from ParseSecret")
}

func TestAReceiverAnswersWhatItCannotTrust(t *testing.T) {
	secret := NewSecret()
	bodies := make(chan string, 1)
	s := httptest.NewServer(verifier(t, secret).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		_ = r.Write(&b)
		bodies <- b.String()[strings.Index(b.String(), "\r\n\r\n")+4:]
	})))
	t.Cleanup(func() {
		s.Client().CloseIdleConnections()
		s.Close()
	})
	const payload = `{"a":1,"b":"é<&>"}`
	for name, c := range map[string]struct {
		body   string
		age    time.Duration
		secret Secret
		drop   string
		status int
	}{
		"genuine":    {payload, 0, secret, "", 200},
		"not signed": {payload, 0, secret, SignatureHeader, 400},
		"by another": {payload, 0, NewSecret(), "", 401},
		"old":        {payload, time.Hour, secret, "", 401},
		"large":      {strings.Repeat("a", DefaultMaxBody+1), 0, secret, "", 413},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(c.body))
			require.NoError(t, err)
			r.Header, err = Sign("msg_1", time.Now().Add(-c.age), []byte(c.body), c.secret)
			require.NoError(t, err)
			r.Header.Del(c.drop)
			resp, err := s.Client().Do(r)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.status, resp.StatusCode)
			if c.status == 200 {
				require.Equal(t, c.body, <-bodies)
			}
		})
	}
	require.Empty(t, bodies)
}
