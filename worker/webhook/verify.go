package webhook

import (
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultTolerance is how far the timestamp of a call may be from the receiver's clock.
const DefaultTolerance = 5 * time.Minute

// Why a call is not to be trusted. The error of a Verifier wraps one of these. It never
// has a signature or a secret in it.
var (
	ErrHeaders   = errors.New("the webhook headers are missing or malformed")
	ErrTooOld    = errors.New("the webhook is too old")
	ErrTooNew    = errors.New("the webhook is from the future")
	ErrSignature = errors.New("no signature of the webhook is valid")
)

// maxSignatures bounds the work that one call can ask for: further ones are not looked at.
const maxSignatures = 32

// endOf9999 is the last second that a timestamp may have: package time wraps round far behind it.
const endOf9999 = 253402300799

// A Verifier tells receivers whether a call is from a holder of the secret. It is safe
// for concurrent use.
//
// A call that is genuine can arrive more than once, also within the tolerance: take its
// webhook-id as the key of an idempotent act.
type Verifier struct {
	// Tolerance is how far a timestamp may be from now, either way. 0 and less means
	// DefaultTolerance. It is set before the first use.
	Tolerance time.Duration
	secrets   []Secret
}

// NewVerifier makes a verifier that takes calls signed with any of the secrets. Those of
// kind whsk_ verify with their public half. The error is a [*throttle.InvalidError].
func NewVerifier(secrets ...Secret) (*Verifier, error) {
	if len(secrets) == 0 {
		return nil, invalid("secrets", 0, "at least one to verify with")
	}
	for i, s := range secrets {
		if s.IsZero() {
			return nil, invalid(fmt.Sprintf("secrets[%d]", i), describe("none"), "one from ParseSecret")
		}
	}
	return &Verifier{secrets: slices.Clone(secrets)}, nil
}

// Verify checks the headers of a call and its body, byte for byte as it arrived. Signatures are
// compared in constant time. now is the receiver's time.
func (v *Verifier) Verify(header http.Header, body []byte, now time.Time) error {
	m, err := v.read(header, now)
	if err != nil {
		return err
	}
	return v.check(m, body)
}

// A message is what the headers of a call say.
type message struct {
	id         string
	at         time.Time
	signatures []string
}

// read judges all that can be judged without the body.
func (v *Verifier) read(header http.Header, now time.Time) (message, error) {
	id, err := single(header, IDHeader)
	if err != nil {
		return message{}, err
	}
	stamp, err := single(header, TimestampHeader)
	if err != nil {
		return message{}, err
	}
	signatures := strings.Fields(strings.Join(header.Values(SignatureHeader), " "))
	switch {
	case !isMessageID(id):
		return message{}, fmt.Errorf("%w: %s %q: want %s", ErrHeaders, IDHeader, clip(id), allowedMessageID)
	case len(signatures) == 0:
		return message{}, fmt.Errorf("%w: %s is missing", ErrHeaders, SignatureHeader)
	}
	// The one form that Sign writes: it is signed as text.
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || seconds < 0 || seconds > endOf9999 || strconv.FormatInt(seconds, 10) != stamp {
		return message{}, fmt.Errorf("%w: %s %q: want Unix time in whole seconds, up to the year 9999",
			ErrHeaders, TimestampHeader, clip(stamp))
	}
	at := time.Unix(seconds, 0)
	tolerance := v.tolerance()
	if age := now.Sub(at); age > tolerance {
		return message{}, fmt.Errorf("%w: %s is %v ago: want at most %v",
			ErrTooOld, TimestampHeader, age.Round(time.Second), tolerance)
	}
	if ahead := at.Sub(now); ahead > tolerance {
		return message{}, fmt.Errorf("%w: %s is %v ahead: want at most %v",
			ErrTooNew, TimestampHeader, ahead.Round(time.Second), tolerance)
	}
	return message{id, at, signatures[:min(len(signatures), maxSignatures)]}, nil
}

// single gives the value of a header that may not be given twice: which one was signed
// could not be told.
func single(header http.Header, name string) (string, error) {
	values := header.Values(name)
	switch {
	case len(values) > 1:
		return "", fmt.Errorf("%w: %s is given %d times: want it once", ErrHeaders, name, len(values))
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("%w: %s is missing", ErrHeaders, name)
	}
	return values[0], nil
}

func (v *Verifier) tolerance() time.Duration {
	if v.Tolerance <= 0 {
		return DefaultTolerance
	}
	return v.Tolerance
}

func (v *Verifier) check(m message, body []byte) error {
	for _, s := range v.secrets {
		if s.get().verifies(m, body) {
			return nil
		}
	}
	return fmt.Errorf("%w: of %d under %d known secrets", ErrSignature, len(m.signatures), len(v.secrets))
}

func (k *secret) verifies(m message, body []byte) bool {
	if k.hmac != nil {
		want := []byte(k.sign(m.id, m.at, body))
		return slices.ContainsFunc(m.signatures, func(given string) bool {
			return subtle.ConstantTimeCompare([]byte(given), want) == 1
		})
	}
	content := signedContent(m.id, m.at, body)
	return slices.ContainsFunc(m.signatures, func(given string) bool {
		encoded, ok := strings.CutPrefix(given, "v1a,")
		if !ok {
			return false
		}
		signature, err := base64.StdEncoding.DecodeString(encoded)
		return err == nil && ed25519.Verify(k.public, content, signature)
	})
}
