// Package provider is the other side of outbound calls for tests: HTTP receivers
// that keep limits as real providers do, tell of them in their various headers, or
// are slow, flaky, endless or elsewhere, and that remember every call.
//
// A [Behaviour] is a struct of settings. Those with a Next pass on the calls that
// they do not answer, so that behaviours combine:
//
//	server := provider.Start(t, provider.Quota{
//		Limit: 10, Window: time.Second, Dialect: provider.IETF,
//		Next: provider.Slow{Delay: 50 * time.Millisecond},
//	})
//
// Every answer's body ends early when the caller goes or the server closes.
package provider
