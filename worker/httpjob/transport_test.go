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
	"net/url"
	"testing"
	"time"

	"github.com/hibiken/asynq"
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

// What a proxy's resolver would take for an address of one's own is refused before it is asked.
func TestHostsThatAProxyMayNotBeAskedFor(t *testing.T) {
	tr := newTransport(Config{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:3128"})})
	for _, host := range []string{
		"2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.", "localhost", "LOCALHOST.", "a.localhost", "[::1]", "10.0.0.1", "169.254.169.254",
	} {
		req, err := http.NewRequest(http.MethodGet, "http://"+host+"/", http.NoBody)
		require.NoError(t, err)
		_, err = tr.proxyFor(req)
		require.Error(t, err, host)
		v := Request{URL: req.URL.String()}.judgeFailure(t.Context(), host, err)
		require.ErrorIs(t, v.err, asynq.SkipRetry, host)
	}
	for _, host := range []string{"example.com", "example.com.", "93.184.216.34", "1.example", "x1"} {
		req, err := http.NewRequest(http.MethodGet, "http://"+host+"/", http.NoBody)
		require.NoError(t, err)
		_, err = tr.proxyFor(req)
		require.NoError(t, err, host)
	}
}

// A redirect to nowhere is the answer that it is.
func TestARedirectThatCannotBeRead(t *testing.T) {
	h, base, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://[bad%zz")
		w.WriteHeader(http.StatusFound)
	})
	require.NoError(t, h.Call(t.Context(), Request{URL: base, Success: []string{"302"}}))
	var failed *CallError
	require.ErrorAs(t, h.Call(t.Context(), Request{URL: base}), &failed)
	require.Equal(t, http.StatusFound, failed.Status)
}
