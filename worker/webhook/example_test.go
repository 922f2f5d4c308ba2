package webhook_test

import (
	"fmt"
	"time"

	"github.com/weirq/weir/worker/webhook"
)

// A sender signs with the new secret and the one that it replaces; a receiver that knows only the
// old one still takes the call.
func ExampleSign() {
	old, _ := webhook.ParseSecret("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	fresh := webhook.NewSecret()
	at, body := time.Unix(1700000000, 0), []byte(`{"a":1,"b":"é<&>"}`)
	header, err := webhook.Sign("msg_2b7f", at, body, fresh, old)
	fmt.Println(header.Get("webhook-id"), header.Get("webhook-timestamp"), err)

	v, err := webhook.NewVerifier(old)
	fmt.Println(err, v.Verify(header, body, at.Add(time.Minute)))
	fmt.Println(v.Verify(header, body, at.Add(time.Hour)))
	fmt.Println(old)
	// Output:
	// msg_2b7f 1700000000 <nil>
	// <nil> <nil>
	// the webhook is too old: webhook-timestamp is 1h0m0s ago: want at most 5m0s
	// whsec_***
}
