package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestEndpointsOutOfBoundsAreRefused(t *testing.T) {
	public, _ := NewPrivateKey().Public()
	known := parse(t, symmetricText)
	headers := func(name, value string) func(*Endpoint) {
		return func(e *Endpoint) { e.Headers = map[string]string{name: value} }
	}
	secrets := func(list ...EndpointSecret) func(*Endpoint) { return func(e *Endpoint) { e.Secrets = list } }
	const allowedURL = " is not allowed: want an absolute URL such as https://example.com/hook"
	for name, c := range map[string]struct {
		change func(*Endpoint)
		want   string // what the error begins with; empty for none
	}{
		"all left out":         {func(*Endpoint) {}, ""},
		"id":                   {func(e *Endpoint) { e.ID = "ep/1" }, `id "ep/1" is not allowed: want 1 to 63 letters, digits, - and _`},
		"id of the version":    {func(e *Endpoint) { e.ID = versionField }, `id ":version" is not allowed`},
		"long id":              {func(e *Endpoint) { e.ID = strings.Repeat("a", 64) }, `id "aaa`},
		"longest id":           {func(e *Endpoint) { e.ID = strings.Repeat("a", 63) }, ""},
		"no URL":               {func(e *Endpoint) { e.URL = "" }, "url of 0 bytes" + allowedURL},
		"another scheme":       {func(e *Endpoint) { e.URL = "ftp://example.com/SECRET" }, "url without http:// or https:// in front" + allowedURL},
		"no host":              {func(e *Endpoint) { e.URL = "https:///SECRET" }, "url without a host" + allowedURL},
		"masked password":      {func(e *Endpoint) { e.URL = "https://u:***@example.com" }, "url whose password is *** is not allowed"},
		"a key of its own":     {func(e *Endpoint) { e.Key = "tenant 1" }, ""},
		"pattern as key":       {func(e *Endpoint) { e.Key = "tenant*" }, `key "tenant*" is not allowed: want one without a *`},
		"another's key":        {func(e *Endpoint) { e.Key = "webhook:other" }, `key "webhook:other" is not allowed: want "webhook:ep_1" or one`},
		"key that is no UTF-8": {func(e *Endpoint) { e.Key = "\xff" }, `key "\xff" is not allowed`},
		"header":               {headers("X-Ok", "é; <&>"), ""},
		"header with LF":       {headers("X-Ok", "SECRET\r\nX-Bad: 1"), `headers["X-Ok"] of 16 bytes is not allowed`},
		"header with NUL":      {headers("X-Ok", "SECRET\x00"), `headers["X-Ok"] of 7 bytes is not allowed`},
		"header not in UTF-8":  {headers("X-Ok", "SECRET\xff"), `headers["X-Ok"] of 7 bytes is not allowed`},
		"header name":          {headers("X Bad", "1"), `headers "X Bad" is not allowed`},
		"header with colon":    {headers(":url", "1"), `headers ":url" is not allowed`},
		"empty header name":    {headers("", "1"), `headers "" is not allowed`},
		"20 KiB of header":     {headers("X-Ok", strings.Repeat("a", 20<<10)), `headers["X-Ok"] of 20480 bytes is not allowed: want at most 8192 bytes`},
		"masked header":        {headers("Authorization", "***"), `headers["Authorization"] "***" is not allowed: want the value itself`},
		"names that differ in case": {
			func(e *Endpoint) { e.Headers = map[string]string{"X-A": "1", "x-a": "2"} }, `headers "x-a" is not allowed: want each name once`,
		},
		"too many bytes of headers": {func(e *Endpoint) {
			e.Headers = make(map[string]string)
			for i := range 9 {
				e.Headers[fmt.Sprintf("X-%d", i)] = strings.Repeat("a", 8<<10)
			}
		}, "headers of "},
		"Host":                 {headers("host", "a"), `headers "host" is not allowed`},
		"Content-Length":       {headers("Content-Length", "1"), `headers "Content-Length" is not allowed`},
		"Transfer-Encoding":    {headers("transfer-encoding", "chunked"), `headers "transfer-encoding" is not allowed`},
		"Connection":           {headers("Connection", "close"), `headers "Connection" is not allowed`},
		"webhook-id":           {headers("webhook-id", "a"), `headers "webhook-id" is not allowed: want headers that do not begin with webhook-`},
		"webhook-signature":    {headers("Webhook-Signature", "a"), `headers "Webhook-Signature" is not allowed`},
		"webhook-timestamp":    {headers("WEBHOOK-TIMESTAMP", "1"), `headers "WEBHOOK-TIMESTAMP" is not allowed`},
		"webhook-anything":     {headers("webhook-x", "1"), `headers "webhook-x" is not allowed`},
		"types and prefixes":   {func(e *Endpoint) { e.Events = []string{"invoice.paid", "user.*", "a"} }, ""},
		"star alone":           {func(e *Endpoint) { e.Events = []string{"*"} }, `events[0] "*" is not allowed`},
		"star inside":          {func(e *Endpoint) { e.Events = []string{"a", "invoice.*.paid"} }, `events[1] "invoice.*.paid" is not allowed`},
		"half a name":          {func(e *Endpoint) { e.Events = []string{"inv*"} }, `events[0] "inv*" is not allowed`},
		"empty filter":         {func(e *Endpoint) { e.Events = []string{""} }, `events[0] "" is not allowed`},
		"too many filters":     {func(e *Endpoint) { e.Events = make([]string, 101) }, "events 101 is not allowed: want at most 100"},
		"public key":           {secrets(EndpointSecret{Secret: public}), "secrets[0] whpk_*** is not allowed: want one that can sign"},
		"no secret in it":      {secrets(EndpointSecret{}), "secrets[0] none is not allowed"},
		"the same twice":       {secrets(EndpointSecret{Secret: known}, EndpointSecret{Secret: known}), "secrets[1] whsec_*** that is given before is not allowed"},
		"all secrets end":      {secrets(EndpointSecret{Secret: known, Until: time.Now()}), "secrets that all end is not allowed: want one without an end"},
		"too many secrets":     {func(e *Endpoint) { e.Secrets = make([]EndpointSecret, 11) }, "secrets 11 is not allowed: want at most 10"},
		"too long of a reason": {func(e *Endpoint) { e.DisabledReason = strings.Repeat("a", 513) }, "disabled_reason of 513 bytes is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			e := Endpoint{ID: "ep_1", URL: "https://example.com/hook"}
			c.change(&e)
			err := e.Validate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, throttle.ErrInvalid)
			require.True(t, strings.HasPrefix(err.Error(), c.want), err.Error())
			require.NotContains(t, err.Error(), "SECRET")
		})
	}
}

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		filters []string
		event   string
		want    bool
	}{
		{nil, "invoice.paid", true},
		{[]string{"invoice.paid"}, "invoice.paid", true},
		{[]string{"invoice.paid"}, "invoice.paid.late", false},
		{[]string{"invoice.paid"}, "Invoice.paid", false},
		{[]string{"invoice.*"}, "invoice.paid", true},
		{[]string{"invoice.*"}, "invoice.paid.late", true},
		{[]string{"invoice.*"}, "invoice", false},
		{[]string{"invoice.*"}, "invoices.paid", false},
		{[]string{"user.*", "invoice.paid"}, "invoice.paid", true},
		{[]string{"user.*", "invoice.paid"}, "invoice.sent", false},
	} {
		require.Equal(t, c.want, Endpoint{Events: c.filters}.wants(c.event), "%v %s", c.filters, c.event)
	}
}

func TestEndpointsAreShownMasked(t *testing.T) {
	e := Endpoint{
		ID: "ep_1", URL: "https://user:PASS1@example.com/hook", Key: "k",
		Secrets: []EndpointSecret{{Secret: parse(t, symmetricText)}},
		Headers: map[string]string{"Authorization": "Bearer SEC4"}, Events: []string{"a.*"},
	}
	encoded, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"ep_1","url":"https://user:%2A%2A%2A@example.com/hook","key":"k","secrets":[{"secret":"whsec_***"}],
		"headers":{"Authorization":"***"},"events":["a.*"],"disabled":false,"disabled_reason":"",
		"created":"0001-01-01T00:00:00Z","updated":"0001-01-01T00:00:00Z"}`, string(encoded))
	require.Equal(t, "Bearer SEC4", e.Headers["Authorization"], "it is not changed itself")

	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "endpoint", e, "list", []Endpoint{e})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "endpoint", e, "list", []Endpoint{e})
	require.Contains(t, log.String(), `"endpoint":{"id":"ep_1","key":"k","host":"example.com","disabled":false}`)
	shown := log.String() + string(encoded) + fmt.Sprintf("%v%+v%#v%s%q%d%x", e, e, e, e, e, e, e) + fmt.Sprintf("%v %+v", []Endpoint{e}, &e)
	require.Contains(t, shown, "endpoint ep_1 at example.com")
	for _, secret := range []string{"PASS1", "SEC4", "MDEy", "0123456789abcdef"} {
		require.NotContains(t, shown, secret)
	}

	// What was read cannot be written back by accident.
	var back Endpoint
	require.ErrorContains(t, json.Unmarshal(encoded, &back), "secret whsec_…")
}
