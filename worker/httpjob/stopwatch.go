package httpjob

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

// A stopwatch times the parts of a call. The transport dials in the background, even
// for a call that has ended.
type stopwatch struct {
	start time.Time

	mu                sync.Mutex
	timing            Timing
	dns, connect, tls time.Time // when it began; zero when it is not under way
}

func (w *stopwatch) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { w.begin(&w.dns) },
		DNSDone:           func(httptrace.DNSDoneInfo) { w.end(&w.dns, &w.timing.DNS) },
		ConnectStart:      func(_, _ string) { w.begin(&w.connect) }, // one for each address
		TLSHandshakeStart: func() { w.begin(&w.tls) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { w.end(&w.tls, &w.timing.TLS) },
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				w.end(&w.connect, &w.timing.Connect)
			}
		},
		GotFirstResponseByte: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.timing.FirstByte = time.Since(w.start)
		},
	})
}

func (w *stopwatch) begin(at *time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.IsZero() {
		*at = time.Now()
	}
}

func (w *stopwatch) end(at *time.Time, took *time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !at.IsZero() {
		*took += time.Since(*at)
		*at = time.Time{}
	}
}

func (w *stopwatch) stop() Timing {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timing.Total = time.Since(w.start)
	return w.timing
}
