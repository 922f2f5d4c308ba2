package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/worker/webhook"
)

// A request is a command that looks at the stored state or changes it, and ends.
type request struct {
	use, short, long, example string
	codes                     string // further exit codes, for the help
	// args are the names of the arguments. Those in brackets may be left out, and the last one
	// may be repeated if its name ends in "...".
	args    []string
	changes bool // what it does is in the audit trail: it takes --by
	flags   func(*pflag.FlagSet)
	// check looks at arguments and flags before Redis is asked for anything.
	check func(args []string, flags *pflag.FlagSet) error
	run   func(ctx context.Context, c *conn, args []string) error
	// offline tells that no Redis is needed: then the conn has none. nil means that one is.
	offline func(args []string, flags *pflag.FlagSet) bool
	// redis is the URL to use where neither flag nor environment have one, and where it
	// was given; nil for the default.
	redis func() (url, from string)
}

// A conn is a connection to the stored state and the place for what it answers.
type conn struct {
	queue  *throttle.Queue
	client redis.UniversalClient
	out    io.Writer
	json   bool
}

const (
	defaultRedis = "redis://127.0.0.1:6379/0"
	redisFlag    = "redis"
	byFlag       = "by"
	jsonFlag     = "json"
)

const requestCodes = `
Exit codes:
  0    done%s
  2    wrong usage or invalid input, nothing changed
  3    Redis unavailable; what it was asked for last may be done or not
  130  interrupted`

// command makes the command of a request.
func (r request) command(term terminal) *cobra.Command {
	long := r.long
	if r.changes {
		long += "\n\nThe audit trail names who did it: --by, or else user@host."
	}
	cmd := &cobra.Command{
		Use: r.use, Short: r.short, Long: long + "\n" + fmt.Sprintf(requestCodes, r.codes), Example: r.example,
		Args:                  r.arguments,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.handle(cmd.Context(), term, cmd.Flags(), args)
		},
	}
	set := cmd.Flags()
	set.SortFlags = false
	if r.flags != nil {
		r.flags(set)
	}
	// The default is told in words: the environment may hold a password.
	set.String(redisFlag, "", "Redis `URL`; WEIR_REDIS in the environment, or else "+defaultRedis)
	if r.changes {
		set.String(byFlag, "", "`NAME` of who does it, for the audit trail (default user@host)")
	}
	set.Bool(jsonFlag, false, "print JSON, an object a line")
	return cmd
}

// arguments checks how many there are.
func (r request) arguments(cmd *cobra.Command, args []string) error {
	most, needed := len(r.args), 0
	for _, name := range r.args {
		if name[0] != '[' {
			needed++
		}
	}
	more := most > 0 && strings.HasSuffix(strings.TrimSuffix(r.args[most-1], "]"), "...")
	switch {
	case len(args) < needed:
		return fmt.Errorf("%s is missing", r.args[len(args)])
	case len(args) > most && most == 0:
		return noArguments(cmd, args)
	case len(args) > most && !more:
		want := fmt.Sprint(most)
		if needed < most {
			want = "at most " + want
		}
		return fmt.Errorf("there are %d arguments: want %s; put one with spaces or a * in quotes", len(args), want)
	}
	return nil
}

func (r request) handle(ctx context.Context, term terminal, set *pflag.FlagSet, args []string) error {
	given := source{set, term.env}
	who, err := r.who(given)
	if url, from, ok := given.text(redisFlag); ok && url == "" {
		err = fmt.Errorf("%s is empty: give it a URL, or leave it out", from)
	}
	if err == nil && r.check != nil {
		err = r.check(args, set)
	}
	if err != nil {
		return fail(exitInvalid, "%w", err)
	}
	c := &conn{}
	if r.offline == nil || !r.offline(args, set) {
		if c, err = r.connect(ctx, given); err != nil {
			return ended(ctx, err)
		}
		defer func() { _ = c.client.Close() }()
		c.queue = c.queue.As(who)
	}
	c.out = term.out
	c.json, _ = set.GetBool(jsonFlag)
	return ended(ctx, r.run(ctx, c, args))
}

func (r request) connect(ctx context.Context, given source) (*conn, error) {
	url, from, ok := given.text(redisFlag)
	if !ok && r.redis != nil {
		url, from = r.redis()
	}
	if url == "" {
		url, from = defaultRedis, ""
	}
	t := target{url: url, wayOut: "start one, or give the URL of another by --redis or WEIR_REDIS", origin: func(setting string) string {
		if setting != redisFlag || from == "" {
			return ""
		}
		return from + ": "
	}}
	client, queue, err := t.connect(ctx)
	return &conn{client: client, queue: queue}, err
}

// who is the name for the audit trail.
func (r request) who(given source) (string, error) {
	if !r.changes {
		return "", nil
	}
	f := given.flags.Lookup(byFlag)
	if !f.Changed {
		return userAtHost(given.env), nil
	}
	name := f.Value.String()
	if name == "" || len(name) > throttle.MaxWhoBytes || !utf8.ValidString(name) {
		return "", fmt.Errorf("--by %q is not allowed: want UTF-8 text of 1 to %d bytes", name, throttle.MaxWhoBytes)
	}
	return name, nil
}

// userAtHost is as much of it as this machine tells.
func userAtHost(env func(string) string) string {
	name := env("USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// ended gives an error its exit code, unless it has one.
func ended(ctx context.Context, err error) error {
	var f *failure
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fail(exitForced, "interrupted (%w): %w", context.Cause(ctx), err)
	case errors.As(err, &f):
		return err
	case errors.Is(err, throttle.ErrInvalid), errors.Is(err, throttle.ErrNoJob), errors.Is(err, webhook.ErrNotFound), errors.Is(err, webhook.ErrExists):
		return fail(exitInvalid, "%w", err)
	}
	return fail(exitRedis, "%w", err)
}

// now is the time by the clock of Redis, which decides everything.
func (c *conn) now(ctx context.Context) (time.Time, error) {
	now, err := c.client.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock of Redis: %w", err)
	}
	return now, nil
}

// names checks exact keys and patterns given as arguments.
func names(args []string, _ *pflag.FlagSet) error {
	for _, name := range args {
		if err := throttle.ValidatePolicyName(name); err != nil {
			return calledArgument("NAME", err)
		}
	}
	return nil
}

// key checks an exact key given as the argument.
func key(args []string, _ *pflag.FlagSet) error {
	return calledArgument("KEY", throttle.ValidateKey(args[0]))
}

// exactKey checks a key given as the first argument to what knows of keys alone: a pattern
// would be taken for one that nobody uses.
func exactKey(args []string, set *pflag.FlagSet) error {
	if strings.Contains(args[0], "*") {
		return &throttle.InvalidError{Field: "KEY", Value: args[0], Allowed: "one exact key, not a pattern: throttled keys PATTERN lists those that match"}
	}
	return key(args, set)
}

// calledArgument makes a refusal name the argument or flag that a value was given by.
func calledArgument(name string, err error) error {
	var refused *throttle.InvalidError
	if !errors.As(err, &refused) {
		return err
	}
	return &throttle.InvalidError{Field: name, Value: refused.Value, Allowed: refused.Allowed}
}
