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

func (s *Redis) check() error {
	if s == nil || s.client == nil || s.scripts == nil {
		return invalid("store", "a Redis without a client", "one that NewRedis made of a client")
	}
	return nil
}

func (s *Redis) open(l *Limiter) space {
	r := &redisLimiter{limiter: l, store: s, prefix: "weir:{" + l.name + ":"}
	shapes := make([]shape, len(l.rules))
	for i, t := range l.rules {
		shapes[i] = t.shape()
	}
	r.scripts = s.scripts.of(shapes)
	for _, arg := range r.args(question{cost: 1}) {
		r.one = append(r.one, fmt.Sprint(arg))
	}
	return r
}

// A redisLimiter asks the scripts that are made for its rules.
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

func (r *redisLimiter) ask(ctx context.Context, q question) (Result, error) {
	cmd := r.command(ctx, "evalsha", r.scripts.take.Hash(), q)
	if err := r.store.client.Process(ctx, cmd); redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = r.command(ctx, "eval", r.scripts.take.source, q)
		_ = r.store.client.Process(ctx, cmd) // the command has its error
	}
	return r.result(ctx, q, cmd)
}

// command calls take.lua. Its reply is numbers alone, which a command of this kind reads without
// room for each.
func (r *redisLimiter) command(ctx context.Context, name, script string, q question) *redis.IntSliceCmd {
	keys, args := r.keys(q.key), r.args(q)
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, script, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := redis.NewIntSliceCmd(ctx, append(all, args...)...)
	cmd.SetFirstKeyPos(3)
	return cmd
}

func (r *redisLimiter) result(ctx context.Context, q question, cmd *redis.IntSliceCmd) (Result, error) {
	reply, err := cmd.Result()
	if err != nil {
		return Result{}, err
	}
	res, _, err := r.read(ctx, q, reply)
	return res, err
}

func (r *redisLimiter) askMany(ctx context.Context, calls []Call) ([]Result, error) {
	results := make([]Result, len(calls))
	left := make([]int, len(calls))
	for i := range left {
		left[i] = i
	}
	var first error
	for try := range 2 {
		pipe := r.store.client.Pipeline()
		cmds := make([]*redis.IntSliceCmd, len(left))
		for n, i := range left {
			cmds[n] = r.command(ctx, "evalsha", r.scripts.take.Hash(), question{key: calls[i].Key, cost: calls[i].Cost})
			_ = pipe.Process(ctx, cmds[n]) // only queued
		}
		_, failed := pipe.Exec(ctx)
		var unknown []int
		for n, i := range left {
			var err error
			if results[i], err = r.result(ctx, question{key: calls[i].Key, cost: calls[i].Cost}, cmds[n]); err == nil {
				continue
			}
			if try == 0 && redis.HasErrorPrefix(err, "NOSCRIPT") {
				unknown = append(unknown, i)
				continue
			}
			if failed != nil && cmds[n].Err() == nil {
				err = failed // the command never was sent
			}
			if first == nil {
				first = err
			}
		}
		if left = unknown; len(left) == 0 {
			break
		}
		// A server that does not know the script is sent it, once for all calls.
		if err := r.scripts.take.Load(ctx, r.store.client).Err(); err != nil && first == nil {
			first = err
		}
	}
	return results, first
}

var errReply = errors.New("the script replied with something else than expected")

// read makes a result of what take.lua replies.
func (r *redisLimiter) read(ctx context.Context, q question, reply []int64) (Result, decision, error) {
	in := replyReader{values: reply}
	now, wait := in.next(), in.next()
	meters := make([]meter, len(r.limiter.rules))
	for i, t := range r.limiter.rules {
		meters[i] = newMeter(t)
		in.meter(meters[i])
	}
	if damaged := in.next(); damaged > 0 {
		r.store.logger.WarnContext(ctx, "stored state of a limiter could not be read, counts as none",
			"limiter", r.limiter.name, "key", q.key, "values", damaged)
	}
	if in.bad || len(in.values) > 0 {
		return Result{}, decision{}, errReply
	}
	d := q.decide(now, now+wait)
	return tell(meters, d), d, nil
}

// hold calls hold.lua, whose reply ends with texts.
func (r *redisLimiter) hold(ctx context.Context, q question) (Result, hold, error) {
	reply, err := eval(ctx, r.store.client, r.scripts.hold, r.keys(q.key), r.args(q)...)
	if err != nil {
		return Result{}, hold{}, err
	}
	values, _ := reply.([]any)
	var numbers []int64
	var texts []string
	for _, v := range values {
		switch v := v.(type) {
		case int64:
			numbers = append(numbers, v)
		case string:
			texts = append(texts, v)
		}
	}
	res, d, err := r.read(ctx, q, numbers)
	if err == nil && len(texts) != 2*len(r.limiter.rules) {
		err = errReply
	}
	if err != nil {
		return Result{}, hold{}, err
	}
	h := hold{slot: d.slot}
	for i := 0; i < len(texts); i += 2 {
		h.before, h.after = append(h.before, texts[i]), append(h.after, texts[i+1])
	}
	return res, h, nil
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
func eval(ctx context.Context, client redis.UniversalClient, s luaScript, keys []string, args ...any) (any, error) {
	reply, err := s.EvalSha(ctx, client, keys, args...).Result()
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.Eval(ctx, client, keys, args...).Result()
	}
	return reply, err
}

// A replyReader takes the numbers of a reply from front to back.
type replyReader struct {
	values []int64
	bad    bool
}

func (r *replyReader) next() int64 {
	if len(r.values) == 0 {
		r.bad = true
		return 0
	}
	n := r.values[0]
	r.values = r.values[1:]
	return n
}

// meter reads the state that the file of its algorithm tells of.
func (r *replyReader) meter(m meter) {
	s := m.current()
	switch m.(type) {
	case *slidingLog: // the entries stay where they are
		s.count, s.instant = r.next(), r.next()
	case *fixedWindow:
		s.instant, s.count = r.next(), r.next()
	case *slidingCounter:
		s.instant, s.count, s.before, s.last = r.next(), r.next(), r.next(), r.next()
		s.written = s.last // not 0 if a slot lies ahead
	case *tokenBucket:
		s.instant, s.parts, s.count = r.next(), r.next(), r.next()
	case *leakyBucket:
		s.instant, s.parts = r.next(), r.next()
	}
}
