package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// DefaultMaxBody is the most that a receiver reads of a call, in bytes.
const DefaultMaxBody = 1 << 20

// Read reads the body of a call, at most so many bytes (0 and less means DefaultMaxBody), and
// verifies it now. Nothing is read of a call whose headers already tell that it is not
// to be trusted. The error wraps one of Verify's, is an [*http.MaxBytesError], or is that
// of the reading.
func (v *Verifier) Read(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	m, err := v.read(r.Header, time.Now())
	if err != nil {
		return nil, err
	}
	if most <= 0 {
		most = DefaultMaxBody
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return nil, err
	}
	return body, v.check(m, body)
}

// Handler has next see only calls that are verified, their bodies ready to be read again.
// Others are answered: 400 for headers that are missing or malformed and for a body that breaks
// off, 401 for a bad signature or timestamp, 413 for more than DefaultMaxBody.
func (v *Verifier) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := v.Read(w, r, DefaultMaxBody)
		if err != nil {
			http.Error(w, http.StatusText(refusal(err)), refusal(err))
			return
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func refusal(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrTooOld), errors.Is(err, ErrTooNew), errors.Is(err, ErrSignature):
		return http.StatusUnauthorized
	}
	return http.StatusBadRequest
}
