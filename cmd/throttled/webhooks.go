package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/webhook"
)

const webhooksHelp = `Webhooks are deliveries of events, signed after the Standard Webhooks specification, to endpoints
that are kept in Redis. Each endpoint is throttled under a key of its own, webhook:ID unless set
otherwise: policies, explain, pause and the like go by that. A worker has to run: throttled serve is one.`

func newWebhooks(term terminal) *cobra.Command {
	return group("webhooks", "Keep endpoints, and publish events to them", webhooksHelp,
		newWebhooksCreate(term), newWebhooksList(term), newWebhooksGet(term), newWebhooksUpdate(term), newWebhooksRotate(term),
		newWebhooksSwitch(term, "disable", "Have an endpoint get no events; jobs that wait go on waiting"),
		newWebhooksSwitch(term, "enable", "Have an endpoint get events again, and its jobs leave"),
		newWebhooksDelete(term), newWebhooksPublish(term))
}

// endpointFlags say what an endpoint is like.
type endpointFlags struct {
	id, url, key    string
	events, headers []string
}

func (f *endpointFlags) register(set *pflag.FlagSet, creates bool) {
	set.StringVar(&f.url, "url", "", "`URL` that is called, http or https")
	set.StringArrayVar(&f.events, "event", nil, "`TYPE` of events to deliver, or invoice.* for all that begin so; may be given again (default all)")
	set.StringArrayVar(&f.headers, "header", nil, "`'NAME: VALUE'` that goes with each call; may be given again")
	if creates {
		set.StringVar(&f.id, "id", "", "`ID` (default a new one)")
		set.StringVar(&f.key, "key", "", "`KEY` that it is throttled under (default webhook:ID)")
	}
}

// into puts the flags that were given into an endpoint.
func (f *endpointFlags) into(e *webhook.Endpoint, changed func(string) bool) error {
	if changed("url") {
		e.URL = f.url
	}
	if changed("event") {
		e.Events = f.events
	}
	if changed("header") {
		e.Headers = make(map[string]string, len(f.headers))
		for _, text := range f.headers {
			name, value, found := strings.Cut(text, ":")
			if !found {
				return fmt.Errorf("--header is not allowed: want 'NAME: VALUE'") // it may hold a secret
			}
			e.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return nil
}

func (c *conn) endpoints() (*webhook.Endpoints, error) {
	return webhook.NewEndpoints(c.client, c.queue)
}

// withEndpoints is a run that needs the endpoints.
func withEndpoints(run func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) error) func(context.Context, *conn, []string) error {
	return func(ctx context.Context, c *conn, args []string) error {
		s, err := c.endpoints()
		if err != nil {
			return err
		}
		return run(ctx, c, s, args)
	}
}

func newWebhooksCreate(term terminal) *cobra.Command {
	var f endpointFlags
	var changed func(string) bool
	return request{
		use: "create --url URL [flags]", short: "Make an endpoint", changes: true,
		long: "Create makes an endpoint with a new secret, and prints it. The secret is not shown again: the receiver needs it.",
		example: `  throttled webhooks create --url https://customer.example/hooks --event 'invoice.*'
  throttled webhooks create --url https://customer.example/hooks --json | jq -r .secret`,
		flags: func(set *pflag.FlagSet) { f.register(set, true) },
		check: func(_ []string, set *pflag.FlagSet) error {
			if changed = set.Changed; f.url == "" {
				return fmt.Errorf("--url is missing")
			}
			return nil
		},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, _ []string) error {
			e := webhook.Endpoint{ID: f.id, Key: f.key}
			if err := f.into(&e, changed); err != nil {
				return fail(exitInvalid, "%w", err)
			}
			e, err := s.Create(ctx, e)
			if err != nil {
				return err
			}
			return c.printSecret(e)
		}),
	}.command(term)
}

// printSecret prints an endpoint with its newest secret, which is never shown again.
func (c *conn) printSecret(e webhook.Endpoint) error {
	secret := e.Secrets[0].Secret.Text()
	if c.json {
		return c.object(struct {
			Endpoint webhook.Endpoint `json:"endpoint"`
			Secret   string           `json:"secret"`
		}{e, secret})
	}
	return c.table([][]string{{"id", e.ID}, {"key", shown(e.Key)}, {"secret", secret}})
}

func newWebhooksRotate(term terminal) *cobra.Command {
	var keep time.Duration
	return request{
		use: "rotate ID [flags]", short: "Have an endpoint sign with a new secret", changes: true, args: []string{"ID"},
		long:    "Rotate makes a new secret and prints it. For as long as --keep calls are signed with the former one as well.",
		example: "  throttled webhooks rotate ep_1 --keep 48h",
		flags: func(set *pflag.FlagSet) {
			set.DurationVar(&keep, "keep", 24*time.Hour, "`DURATION` for which the former secret signs too, up to "+brief(webhook.MaxKeep)+"; 0 if it got known")
		},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) error {
			e, err := s.RotateSecret(ctx, args[0], webhook.Secret{}, keep)
			if err != nil {
				return err
			}
			return c.printSecret(e)
		}),
	}.command(term)
}

func newWebhooksList(term terminal) *cobra.Command {
	var page pageFlags
	return request{
		use: "list [flags]", short: "List the endpoints", long: "List shows endpoints by id. Secrets and the values of headers are masked.",
		flags: page.register, check: func([]string, *pflag.FlagSet) error { return page.check() },
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, _ []string) error {
			found, err := s.List(ctx, page.page())
			if err != nil {
				return asFlag(err, "cursor")
			}
			return c.printEndpoints(found.Next, found.Endpoints...)
		}),
	}.command(term)
}

func (c *conn) printEndpoints(next string, endpoints ...webhook.Endpoint) error {
	rows := [][]string{{"ID", "KEY", "HOST", "EVENTS", "STATE", "UPDATED"}}
	for _, e := range endpoints {
		if c.json {
			if err := c.object(e); err != nil {
				return err
			}
			continue
		}
		state := "enabled"
		if e.Disabled {
			state = strings.TrimSuffix("disabled: "+shown(e.DisabledReason), ": ")
		}
		rows = append(rows, []string{e.ID, shown(e.Key), shown(e.Host()), orNone(shown(strings.Join(e.Events, ", "))), state, stamp(e.Updated)})
	}
	if !c.json {
		if err := c.table(rows); err != nil {
			return err
		}
	}
	return c.next(next)
}

func newWebhooksGet(term terminal) *cobra.Command {
	return request{
		use: "get ID [flags]", short: "Show an endpoint", long: "Get shows an endpoint. Secrets and the values of headers are masked.", args: []string{"ID"},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) error {
			e, err := s.Get(ctx, args[0])
			if err != nil {
				return err
			}
			return c.printEndpoints("", e)
		}),
	}.command(term)
}

func newWebhooksUpdate(term terminal) *cobra.Command {
	var f endpointFlags
	var changed func(string) bool
	return request{
		use: "update ID [flags]", short: "Change an endpoint", changes: true, args: []string{"ID"},
		long:  "Update changes what flags say, for the next attempt of jobs that wait too; lists are replaced as a whole.",
		flags: func(set *pflag.FlagSet) { f.register(set, false) },
		check: func(_ []string, set *pflag.FlagSet) error {
			if changed = set.Changed; !changed("url") && !changed("event") && !changed("header") {
				return fmt.Errorf("there is nothing to change: give --url or another flag")
			}
			return nil
		},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) error {
			e, err := s.Update(ctx, args[0], func(e *webhook.Endpoint) error { return f.into(e, changed) })
			if err != nil {
				return err
			}
			return c.printEndpoints("", e)
		}),
	}.command(term)
}

func newWebhooksSwitch(term terminal, what, short string) *cobra.Command {
	var reason string
	return request{
		use: what + " ID [flags]", short: short, long: short + ".", changes: true, args: []string{"ID"},
		flags: func(set *pflag.FlagSet) {
			if what == "disable" {
				set.StringVar(&reason, "reason", "", "`TEXT` for whoever asks why")
			}
		},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) (err error) {
			var e webhook.Endpoint
			if what == "disable" {
				e, err = s.Disable(ctx, args[0], reason)
			} else {
				e, err = s.Enable(ctx, args[0])
			}
			if err != nil {
				return err
			}
			return c.printEndpoints("", e)
		}),
	}.command(term)
}

func newWebhooksDelete(term terminal) *cobra.Command {
	return request{
		use: "delete ID [flags]", short: "Remove an endpoint", long: "Delete removes an endpoint. Jobs for it end among the dead letters.", changes: true, args: []string{"ID"},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) error {
			if err := s.Delete(ctx, args[0]); err != nil {
				return err
			}
			if c.json {
				return c.object(map[string]string{"deleted": args[0]})
			}
			return c.line("deleted %s", args[0])
		}),
	}.command(term)
}

func newWebhooksPublish(term terminal) *cobra.Command {
	var id, data, file string
	return request{
		use: "publish TYPE [flags]", short: "Publish an event", args: []string{"TYPE"},
		long: `Publish enqueues one job for each enabled endpoint that wants events of the type. The same --id again
adds nothing as long as those jobs have not ended.`,
		example: `  throttled webhooks publish invoice.paid --id msg_42 --data '{"id":"inv_1"}'
  throttled webhooks publish invoice.paid --data-file - <event.json`,
		flags: func(set *pflag.FlagSet) {
			set.StringVar(&id, "id", "", "`ID` of the event, the webhook-id (default a new one)")
			set.StringVar(&data, "data", "", "`BODY` of each call, sent as it is")
			set.StringVar(&file, "data-file", "", "`FILE` that has the body, - for standard input")
		},
		check: func(_ []string, set *pflag.FlagSet) error {
			if set.Changed("data") == set.Changed("data-file") {
				return fmt.Errorf("give one of --data and --data-file")
			}
			return nil
		},
		run: withEndpoints(func(ctx context.Context, c *conn, s *webhook.Endpoints, args []string) error {
			body := []byte(data)
			if file != "" {
				var err error
				if body, err = readBody(file); err != nil {
					return fail(exitInvalid, "--data-file: %w", err)
				}
			}
			p, err := webhook.NewPublisher(s, webhook.PublisherConfig{})
			if err != nil {
				return err
			}
			done, err := p.Publish(ctx, webhook.Event{ID: id, Type: args[0], Data: body})
			if err != nil {
				return err
			}
			return c.printPublication(done)
		}),
	}.command(term)
}

func readBody(file string) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	body, err := io.ReadAll(io.LimitReader(in, throttle.DefaultMaxJobSize+1))
	if err == nil && len(body) > throttle.DefaultMaxJobSize {
		err = fmt.Errorf("it is longer than %d bytes", throttle.DefaultMaxJobSize)
	}
	return body, err
}

func (c *conn) printPublication(p webhook.Publication) error {
	rows := [][]string{{"ENDPOINT", "JOB", "STATE", "DEPARTURE"}}
	for _, d := range p.Deliveries {
		departs := ""
		if !d.EstimatedDeparture.IsZero() {
			departs = stamp(d.EstimatedDeparture)
		}
		if c.json {
			if err := c.object(map[string]any{"event": p.EventID, "endpoint": d.EndpointID, "job": d.ID, "state": d.State, "departure": departs}); err != nil {
				return err
			}
		}
		rows = append(rows, []string{d.EndpointID, shown(d.ID), d.State, orNone(departs)})
	}
	switch {
	case c.json:
		return nil
	case len(p.Deliveries) == 0:
		return c.line("no endpoint wants it")
	}
	return c.table(rows)
}
