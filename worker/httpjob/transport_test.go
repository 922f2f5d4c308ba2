package httpjob

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHTTP2(t *testing.T) {
	protocols := make(chan string, 1)
	base, trusting := secureServer(t, func(_ http.ResponseWriter, r *http.Request) { protocols <- r.Proto })
	h := NewHandler(Config{AllowNetworks: here, TLS: trusting})
	defer h.CloseIdleConnections()
	require.NoError(t, process(t.Context(), t, h, Request{URL: base, Body: []byte("x")}))
	require.Equal(t, "HTTP/2.0", <-protocols)
}

func TestTLSIsVerified(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11} //nolint:gosec // it is to be refused
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	given := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS10} //nolint:gosec // it is to be raised
	h := NewHandler(Config{AllowNetworks: here, TLS: given})
	defer h.CloseIdleConnections()
	require.ErrorContains(t, process(t.Context(), t, h, Request{URL: s.URL}), "protocol version not supported")
	require.EqualValues(t, tls.VersionTLS10, given.MinVersion, "the one given stays as it is")

	base, _ := secureServer(t, func(http.ResponseWriter, *http.Request) {})
	for name, given := range map[string]*tls.Config{"none": nil, "skipped": {InsecureSkipVerify: true}} { //nolint:gosec // it is to be ignored
		h := NewHandler(Config{AllowNetworks: here, TLS: given})
		require.ErrorContains(t, process(t.Context(), t, h, Request{URL: base}), "certificate", name)
		h.CloseIdleConnections()
	}
}

func TestClientCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "weir"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)

	names := make(chan string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		names <- r.TLS.PeerCertificates[0].Subject.CommonName
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	h := NewHandler(Config{AllowNetworks: here, TLS: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}})
	defer h.CloseIdleConnections()
	require.NoError(t, process(t.Context(), t, h, Request{URL: s.URL}))
	require.Equal(t, "weir", <-names)
}
