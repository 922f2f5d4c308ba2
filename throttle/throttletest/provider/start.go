package provider

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
)

// A Server is a behaviour on a free port of 127.0.0.1, with the record of the calls
// to it, by path.
type Server struct {
	*Record
	URL string // without a slash at the end
}

// Start starts a server. It is closed when the test ends, with what it has not
// answered by then. It fails the test if a setting is out of bounds.
func Start(tb testing.TB, b Behaviour) *Server {
	tb.Helper()
	h, err := b.Handler()
	if err != nil {
		tb.Fatalf("start the provider that this test needs: %v", err)
	}
	rec := NewRecord(h, nil)
	s := httptest.NewUnstartedServer(rec)
	rec.Attach(s.Config)
	ctx, cancel := context.WithCancel(context.Background())
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Start()
	tb.Cleanup(func() {
		cancel()                   // ends those who wait
		s.CloseClientConnections() // and those who write to somebody who does not read
		s.Close()
	})
	return &Server{Record: rec, URL: s.URL}
}
