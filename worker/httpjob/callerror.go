package httpjob

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// A CallError tells why a call is not done. Its text names the method and the
// host; the rest of the URL, the headers and anything the other side wrote stay
// out of it, as each may hold a secret.
type CallError struct {
	Method string
	Host   string // with the port, if the URL has one
	Status int    // of the answer; 0 when there was none
	Err    error  // why there was no answer
}

func (e *CallError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s to %s: %v", e.Method, e.Host, e.Err)
	}
	// Not the reason phrase of the answer: that is free text.
	if text := http.StatusText(e.Status); text != "" {
		return fmt.Sprintf("%s to %s: %d %s", e.Method, e.Host, e.Status, text)
	}
	return fmt.Sprintf("%s to %s: %d", e.Method, e.Host, e.Status)
}

// Unwrap gives the reason why there was no answer.
func (e *CallError) Unwrap() error { return e.Err }

var (
	errUnusable = errors.New("the connection broke or the answer was not HTTP")
	errNoAnswer = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
)

// certificateFault is what is wrong with a certificate, without the names in it: the other side wrote those.
func certificateFault(err error) error {
	var host x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &host):
		return errors.New("the certificate is for another host")
	case errors.As(err, &unknown):
		return errors.New("the certificate is signed by an authority that is not trusted")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return errors.New("the certificate has expired or is not yet valid")
	}
	return errors.New("the certificate is not valid")
}

// cause finds the part of a client's error that is safe to show. Errors of
// net/http quote the URL, and may quote what a broken server wrote, which may be
// the request itself: so known kinds are let through and nothing else.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		op   *net.OpError
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		rec  tls.RecordHeaderError
		tout net.Error
	)
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect": // may wrap what the proxy wrote
		return &net.OpError{Op: op.Op, Net: op.Net, Err: cause(ctx, op.Err)}
	case errors.As(err, &op):
		return op
	case errors.As(err, &dns):
		return dns
	case errors.As(err, &cert):
		return certificateFault(cert.Err)
	case errors.As(err, &rec) && string(rec.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch // as http.Client puts it
	case errors.As(err, &rec):
		return rec
	case errors.Is(err, http.ErrSchemeMismatch):
		return http.ErrSchemeMismatch
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case errors.As(err, &tout) && tout.Timeout():
		return errNoAnswer
	}
	return errUnusable
}
