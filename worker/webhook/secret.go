package webhook

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The prefixes that tell the kinds of secrets apart.
const (
	symmetricPrefix = "whsec_" // HMAC-SHA256, signatures "v1"
	privatePrefix   = "whsk_"  // ed25519, signatures "v1a"
	publicPrefix    = "whpk_"  // verifies what the private one signed
)

// The size of a symmetric secret, in bytes before base64.
const (
	MinSecretBytes = 24
	MaxSecretBytes = 64
)

// A Secret signs or verifies. However it is printed, logged or encoded it shows no more
// than its kind; only [Secret.Text] gives it away. The zero Secret is none: it cannot
// sign, and verifies nothing.
type Secret struct {
	// A pointer to a pointer, which package fmt does not follow. Where a Secret is an unexported field
	// of a struct, Format is not asked, and with a wrong verb a pointer is followed.
	p **secret
}

type secret struct {
	prefix  string
	key     []byte // what follows the prefix
	hmac    *standardwebhooks.Webhook
	private ed25519.PrivateKey // nil unless it can sign v1a
	public  ed25519.PublicKey  // nil for a symmetric one
}

const allowedSecret = `"whsec_" and the base64 of 24 to 64 bytes, "whsk_" and that of an ed25519 seed or private key, ` +
	`or "whpk_" and that of an ed25519 public key`

// ParseSecret reads a secret in the form in which it is shown to customers: "whsec_" and
// base64 for a symmetric one of MinSecretBytes to MaxSecretBytes; "whsk_" and base64 for
// an ed25519 key, which is its seed of 32 bytes or seed and public key, 64 bytes; "whpk_"
// and base64 for the public key of one.
//
// The padding may be left out: there is only one way to read it. The prefix may not, as
// then a key of 32 bytes could be of any kind. The error is a [*throttle.InvalidError]
// that tells what is wrong and never repeats the secret.
func ParseSecret(text string) (Secret, error) {
	for _, prefix := range []string{symmetricPrefix, privatePrefix, publicPrefix} {
		encoded, ok := strings.CutPrefix(text, prefix)
		if !ok {
			continue
		}
		key, ok := decode(encoded)
		if !ok {
			return refused("%s… of %d bytes that is not base64", prefix, len(text))
		}
		return newSecret(prefix, key)
	}
	if strings.HasPrefix(text, "v1,") || strings.HasPrefix(text, "v1a,") {
		return refused("of %d bytes with the version of a signature in front", len(text))
	}
	return refused("of %d bytes without a known prefix", len(text))
}

func refused(given string, args ...any) (Secret, error) {
	return Secret{}, invalid("secret", describe(given, args...), allowedSecret)
}

// decode reads base64 of the standard alphabet on one line, padded or not.
func decode(text string) ([]byte, bool) {
	if strings.ContainsAny(text, "\r\n") { // which package base64 skips
		return nil, false
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(text, "=") {
		encoding = base64.RawStdEncoding
	}
	key, err := encoding.DecodeString(text)
	return key, err == nil
}

func newSecret(prefix string, key []byte) (Secret, error) {
	s := &secret{prefix: prefix, key: key}
	refuse := func(allowed string, args ...any) (Secret, error) {
		return Secret{}, invalid("secret", describe("%s… of %d bytes before base64", prefix, len(key)), allowed, args...)
	}
	switch prefix {
	case symmetricPrefix:
		if len(key) < MinSecretBytes || len(key) > MaxSecretBytes {
			return refuse("%d to %d bytes", MinSecretBytes, MaxSecretBytes)
		}
		s.hmac, _ = standardwebhooks.NewWebhookRaw(key) // takes any key
	case privatePrefix:
		switch len(key) {
		case ed25519.SeedSize:
			s.private = ed25519.NewKeyFromSeed(key)
		case ed25519.PrivateKeySize:
			s.private = ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
			if subtle.ConstantTimeCompare(s.private, key) != 1 {
				return refused("%s… whose two halves are of different keys", prefix)
			}
		default:
			return refuse("an ed25519 seed of %d bytes, or private key of %d", ed25519.SeedSize, ed25519.PrivateKeySize)
		}
		s.public, _ = s.private.Public().(ed25519.PublicKey)
	case publicPrefix:
		if len(key) != ed25519.PublicKeySize {
			return refuse("an ed25519 public key of %d bytes", ed25519.PublicKeySize)
		}
		s.public = key
	}
	return Secret{&s}, nil
}

// NewSecret makes a random symmetric secret of 32 bytes.
func NewSecret() Secret { return random(symmetricPrefix) }

// NewPrivateKey makes a random ed25519 key. Its [Secret.Public] is what receivers need.
func NewPrivateKey() Secret { return random(privatePrefix) }

func random(prefix string) Secret {
	key := make([]byte, 32)
	_, _ = rand.Read(key)          // never fails, says crypto/rand
	s, _ := newSecret(prefix, key) // of a size that is allowed
	return s
}

// get is nil for the zero Secret.
func (s Secret) get() *secret {
	if s.p == nil {
		return nil
	}
	return *s.p
}

// Text is the secret itself, in the form that ParseSecret reads, padding included. It is
// empty for the zero Secret.
func (s Secret) Text() string {
	k := s.get()
	if k == nil {
		return ""
	}
	return k.prefix + base64.StdEncoding.EncodeToString(k.key)
}

// Public is what verifies the signatures of an ed25519 key and is no secret: the same
// for a public key. A symmetric secret has none.
func (s Secret) Public() (public Secret, ok bool) {
	k := s.get()
	if k == nil || k.public == nil {
		return Secret{}, false
	}
	public, err := newSecret(publicPrefix, k.public)
	return public, err == nil
}

// CanSign tells whether it is symmetric or a private key.
func (s Secret) CanSign() bool {
	k := s.get()
	return k != nil && (k.hmac != nil || k.private != nil)
}

// IsZero tells whether it is none.
func (s Secret) IsZero() bool { return s.p == nil }

// Equal tells, in constant time, whether both are the same key of the same kind.
func (s Secret) Equal(other Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Text()), []byte(other.Text())) == 1
}
