package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The headers of a signed call. Upper and lower case are the same.
const (
	IDHeader        = standardwebhooks.HeaderWebhookID        // the same at every attempt
	TimestampHeader = standardwebhooks.HeaderWebhookTimestamp // of the attempt, Unix time in seconds
	SignatureHeader = standardwebhooks.HeaderWebhookSignature // one or more, with spaces between
)

// MaxMessageID is the longest webhook-id, in bytes.
const MaxMessageID = 128

// Sign gives the three headers of a call: its id, the instant of the attempt, which counts
// in whole seconds, and one signature for each secret in the order given. More than one
// is for the time in which a secret is replaced: receivers take any. An id is 1 to
// MaxMessageID printable ASCII bytes without spaces and full stops. The error is a
// [*throttle.InvalidError] and repeats no secret.
func Sign(id string, at time.Time, body []byte, secrets ...Secret) (http.Header, error) {
	if !isMessageID(id) {
		return nil, invalid(IDHeader, clip(id), allowedMessageID)
	}
	if at.Unix() < 0 {
		return nil, invalid(TimestampHeader, at.Format(time.RFC3339), "a time from 1970 on")
	}
	if len(secrets) == 0 {
		return nil, invalid("secrets", 0, "at least one to sign with")
	}
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		if !s.CanSign() {
			return nil, cannotSign(fmt.Sprintf("secrets[%d]", i), s)
		}
		signatures[i] = s.get().sign(id, at, body)
	}
	h := make(http.Header, 3)
	h.Set(IDHeader, id)
	h.Set(TimestampHeader, strconv.FormatInt(at.Unix(), 10))
	h.Set(SignatureHeader, strings.Join(signatures, " "))
	return h, nil
}

const allowedMessageID = "1 to 128 printable ASCII bytes without spaces and full stops"

// isMessageID refuses a full stop, which parts the id from what else is signed: with one
// in it, a signed message could be read as another.
func isMessageID(id string) bool {
	if id == "" || len(id) > MaxMessageID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' || id[i] == '.' {
			return false
		}
	}
	return true
}

// sign gives a signature with its version. It can sign.
func (k *secret) sign(id string, at time.Time, body []byte) string {
	if k.hmac != nil {
		signature, _ := k.hmac.Sign(id, at, body) // its error is always nil
		return signature
	}
	signature := ed25519.Sign(k.private, signedContent(id, at, body))
	return "v1a," + base64.StdEncoding.EncodeToString(signature)
}

func signedContent(id string, at time.Time, body []byte) []byte {
	head := id + "." + strconv.FormatInt(at.Unix(), 10) + "."
	return append([]byte(head), body...)
}

func cannotSign(field string, s Secret) error {
	given := describe("%s", s)
	if s.IsZero() {
		given = "none"
	}
	return invalid(field, given, "one that can sign: whsec_… or whsk_…")
}
