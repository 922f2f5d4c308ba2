package limiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// RedisConfig is for a store on Redis; its zero value is right.
type RedisConfig struct {
	// Logger is told of stored values that could not be read and count as none. Default: nobody.
	Logger *slog.Logger
}

// Redis keeps what keys have used on a Redis server, Sentinel or Cluster, of version 7.0 or
// later, or a server that speaks as one. A decision is one script: one round trip, by the
// clock of the server, which also lets the state expire.
//
// The names are weir:{NAME:KEY} for the first rule of a limiter, and the same with 1, 2 and so on behind
// it for the others.
type Redis struct {
	client  redis.UniversalClient
	logger  *slog.Logger
	scripts *scripts
}

// NewRedis makes a store of a client, which stays the caller's to close. The client should have
// ContextTimeoutEnabled, or deadlines do not cut a stalled call. A client that repeats
// commands whose answer was lost, as go-redis does unless MaxRetries is -1, may charge
// a call several times; it then allows less, never more.
func NewRedis(client redis.UniversalClient, c RedisConfig) *Redis {
	return newRedis(client, c, serverClock)
}

func newRedis(client redis.UniversalClient, c RedisConfig, clock string) *Redis {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Redis{client: client, logger: c.Logger, scripts: newScripts(clock)}
}

func (s *Redis) open(l *Limiter) space {
	r := &redisLimiter{limiter: l, store: s, prefix: "weir:{" + l.name + ":"}
	kinds := make([]Algorithm, len(l.rules))
	for i, t := range l.rules {
		kinds[i] = t.kind()
	}
	r.scripts = s.scripts.of(kinds)
	for _, arg := range r.args(question{cost: 1}) {
		r.one = append(r.one, fmt.Sprint(arg))
	}
	return r
}

// A redisLimiter asks the scripts of the algorithms that its rules need.
type redisLimiter struct {
	limiter *Limiter
	store   *Redis
	prefix  string
	scripts scriptSet
	one     []any // arguments of the usual call, a cost of 1 now
}

// keys are the names of the values of a key. They have one hash tag, which never is empty.
func (r *redisLimiter) keys(key string) []string {
	name := r.prefix + key + "}"
	if len(r.limiter.rules) == 1 {
		return []string{name}
	}
	list := make([]string, len(r.limiter.rules))
	list[0] = name
	for i := 1; i < len(list); i++ {
		list[i] = name + strconv.Itoa(i)
	}
	return list
}

func (r *redisLimiter) ask(ctx context.Context, q question) (Result, error) {
	res, _, err := r.run(ctx, r.scripts.take, q)
	return res, err
}

func (r *redisLimiter) hold(ctx context.Context, q question) (Result, hold, error) {
	return r.run(ctx, r.scripts.hold, q)
}

func (r *redisLimiter) run(ctx context.Context, s *redis.Script, q question) (Result, hold, error) {
	reply, err := eval(ctx, r.store.client, s, r.keys(q.key), r.args(q)...)
	if err != nil {
		return Result{}, hold{}, err
	}
	return r.read(ctx, q, reply)
}

// args are those of take.lua.
func (r *redisLimiter) args(q question) []any {
	if q.cost == 1 && q.patience == 0 && !q.peek && r.one != nil {
		return r.one
	}
	patience := q.patience
	if q.peek {
		patience = -1
	}
	args := make([]any, 0, firstArgs+5*len(r.limiter.rules))
	args = append(args, q.cost, patience)
	for _, t := range r.limiter.rules {
		args = t.appendArgs(args, q.cost)
	}
	return args
}

// appendArgs adds what the script of the algorithm takes of a rule.
func (t *terms) appendArgs(args []any, cost int64) []any {
	switch t.kind() {
	case TokenBucketAlgorithm:
		return append(args, t.rate, t.period, t.burst, t.fill, t.fillParts)
	case LeakyBucketAlgorithm:
		leak, parts, _ := t.span(cost)
		return append(args, t.rate, leak, parts, t.fill, t.fillParts)
	default:
		return append(args, t.window, t.burst)
	}
}

var errReply = errors.New("the script replied with something else than expected")

// read makes a result of what take.lua replies.
func (r *redisLimiter) read(ctx context.Context, q question, reply any) (Result, hold, error) {
	values, _ := reply.([]any)
	in := replyReader{values: values}
	now, wait := in.int(), in.int()
	meters := make([]meter, len(r.limiter.rules))
	for i, t := range r.limiter.rules {
		meters[i] = newMeter(t)
		in.meter(meters[i])
	}
	if damaged := in.int(); damaged > 0 {
		r.store.logger.WarnContext(ctx, "stored state of a limiter could not be read, counts as none",
			"limiter", r.limiter.name, "key", q.key, "values", damaged)
	}
	d := q.decide(now, now+wait)
	h := hold{slot: d.slot}
	for len(in.values) > 0 && !in.bad {
		h.before, h.after = append(h.before, in.text()), append(h.after, in.text())
	}
	if in.bad {
		return Result{}, hold{}, errReply
	}
	return tell(meters, d), h, nil
}

func (r *redisLimiter) askMany(ctx context.Context, calls []Call) ([]Result, error) {
	results := make([]Result, len(calls))
	left := make([]int, len(calls))
	for i := range left {
		left[i] = i
	}
	// A server that does not know the script is sent it with a call; the others know it then.
	var first error
	for _, whole := range []bool{false, true} {
		pipe := r.store.client.Pipeline()
		cmds := make([]*redis.Cmd, len(left))
		for n, i := range left {
			q := question{key: calls[i].Key, cost: calls[i].Cost}
			if keys, args := r.keys(q.key), r.args(q); whole {
				cmds[n] = r.scripts.take.Eval(ctx, pipe, keys, args...)
			} else {
				cmds[n] = r.scripts.take.EvalSha(ctx, pipe, keys, args...)
			}
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		var unknown []int
		for n, i := range left {
			q := question{key: calls[i].Key, cost: calls[i].Cost}
			reply, err := cmds[n].Result()
			if err == nil {
				results[i], _, err = r.read(ctx, q, reply)
			}
			switch {
			case err != nil && !whole && redis.HasErrorPrefix(err, "NOSCRIPT"):
				unknown = append(unknown, i)
			case err != nil && first == nil:
				first = err
			}
		}
		if left = unknown; len(left) == 0 {
			break
		}
	}
	return results, first
}

// cancel has cancel.lua take a charge back.
func (r *redisLimiter) cancel(ctx context.Context, key string, cost int64, h hold) error {
	args := []any{cost, h.slot}
	for i, t := range r.limiter.rules {
		args = t.appendArgs(append(args, h.before[i], h.after[i]), cost)
	}
	_, err := eval(ctx, r.store.client, r.scripts.cancel, r.keys(key), args...)
	return err
}

func (r *redisLimiter) reset(ctx context.Context, key string) error {
	return r.store.client.Del(ctx, r.keys(key)...).Err()
}

// eval calls a script, which is sent along if the server does not know it.
func eval(ctx context.Context, client redis.UniversalClient, s *redis.Script, keys []string, args ...any) (any, error) {
	reply, err := s.EvalSha(ctx, client, keys, args...).Result()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.Eval(ctx, client, keys, args...).Result()
	}
	return reply, err
}

// A replyReader takes the values of a reply from front to back.
type replyReader struct {
	values []any
	bad    bool
}

func (r *replyReader) int() int64 {
	n, ok := r.next().(int64)
	r.bad = r.bad || !ok
	return n
}

func (r *replyReader) text() string {
	s, ok := r.next().(string)
	r.bad = r.bad || !ok
	return s
}

func (r *replyReader) next() any {
	if len(r.values) == 0 {
		return nil
	}
	v := r.values[0]
	r.values = r.values[1:]
	return v
}

// meter reads the state that the file of its algorithm tells of.
func (r *replyReader) meter(m meter) {
	s := m.current()
	switch m.(type) {
	case *slidingLog: // the entries stay where they are
		s.count, s.instant = r.int(), r.int()
	case *fixedWindow:
		s.instant, s.count = r.int(), r.int()
	case *slidingCounter:
		s.instant, s.count, s.before, s.last = r.int(), r.int(), r.int(), r.int()
		s.written = s.last // not 0 if a slot lies ahead
	case *tokenBucket:
		s.instant, s.parts, s.count = r.int(), r.int(), r.int()
	case *leakyBucket:
		s.instant, s.parts = r.int(), r.int()
	}
}
