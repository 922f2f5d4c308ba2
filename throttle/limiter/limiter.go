package limiter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
)

// Forever is as good as no bound on a wait: about 79 years.
const Forever = forever * time.Microsecond

// MaxRules bounds the rules of a limiter.
const MaxRules = 8

// A Limiter answers at once whether something may happen now, for any number of keys that
// each have the same rules and a state of their own. What is allowed is charged to all rules, what
// is denied to none. It may be used by any number of goroutines.
type Limiter struct {
	store Store
	name  string
	rules []*terms
	most  int64 // cost that can ever pass
	space space
}

var names = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New makes a limiter of one rule, or of several which must all allow; a [LeakyQueue] is
// alone. Limiters of one
// store and name share their state, in all processes: give each limit its own name. When
// the rules of a name change, what was charged stays charged as far as it counts under both: the algorithm must be the
// same, and a window counts what came since it began. While limiters with windows of different lengths
// share a name, as during a slow deployment, the charges of the shorter ones cut those of the longer ones off: a longer
// window wants a name of its own.
//
// The error is a [*throttle.InvalidError] that names the argument.
func New(store Store, name string, rules ...Rule) (*Limiter, error) {
	if store == nil {
		return nil, invalid("store", "nil", "NewRedis or NewMemory")
	}
	if err := store.check(); err != nil {
		return nil, err
	}
	if !names.MatchString(name) {
		return nil, invalid("name", name, "1 to 64 letters, digits, dots, dashes and underscores")
	}
	if len(rules) < 1 || len(rules) > MaxRules {
		return nil, invalid("rules", len(rules), "1 to %d of them", MaxRules)
	}
	l := &Limiter{store: store, name: name, most: throttle.MaxBurst}
	for i, r := range rules {
		if err := r.Validate(); err != nil {
			if bad := new(throttle.InvalidError); errors.As(err, &bad) {
				return nil, &throttle.InvalidError{
					Field: "rules[" + strconv.Itoa(i) + "]." + bad.Field, Value: bad.Value, Allowed: bad.Allowed,
				}
			}
			return nil, err
		}
		if r.algorithm == LeakyQueueAlgorithm && len(rules) > 1 {
			return nil, invalid("rules["+strconv.Itoa(i)+"]", r.String(), "a leaky queue alone, since what it lets wait would leave when other rules do not allow it")
		}
		l.rules = append(l.rules, newTerms(r))
		l.most = min(l.most, r.limit.Burst)
	}
	l.space = store.open(l)
	return l, nil
}

// Name is the name that the state is kept under.
func (l *Limiter) Name() string { return l.name }

// Rules are the rules, in their order.
func (l *Limiter) Rules() []Rule {
	rules := make([]Rule, len(l.rules))
	for i, t := range l.rules {
		rules[i] = t.Rule
	}
	return rules
}

// String gives the name and the rules.
func (l *Limiter) String() string {
	texts := make([]string, len(l.rules))
	for i, t := range l.rules {
		texts[i] = t.String()
	}
	return l.name + ": " + strings.Join(texts, ", ")
}

// Allow charges a cost of 1 to a key, if its rules allow that now.
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.AllowN(ctx, key, 1)
}

// AllowN charges a cost to a key, if its rules allow that now. A key is UTF-8 text of 1 to
// [throttle.MaxKeyBytes] bytes, a cost from 1 to the most that can pass at once: a greater one
// is a [*NeverError], and any other cost or key a [*throttle.InvalidError].
//
// With a store on Redis an error may also be one of the way there. What was asked may then have been
// charged; it is never allowed twice for one charge.
func (l *Limiter) AllowN(ctx context.Context, key string, cost int64) (Result, error) {
	return l.ask(ctx, question{key: key, cost: cost})
}

// Peek tells what Allow would answer, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string) (Result, error) {
	return l.PeekN(ctx, key, 1)
}

// PeekN tells what AllowN would answer, and charges nothing.
func (l *Limiter) PeekN(ctx context.Context, key string, cost int64) (Result, error) {
	return l.ask(ctx, question{key: key, cost: cost, peek: true})
}

// Reset forgets all that was charged to a key.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := throttle.ValidateKey(key); err != nil {
		return err
	}
	if err := l.space.reset(ctx, key); err != nil {
		return fmt.Errorf("limiter %s: reset key %q: %w", l.name, key, err)
	}
	return nil
}

func (l *Limiter) ask(ctx context.Context, q question) (Result, error) {
	if err := l.validate(q.key, q.cost); err != nil {
		return Result{}, err
	}
	r, err := l.space.ask(ctx, q)
	if err != nil {
		return Result{}, fmt.Errorf("limiter %s: key %q: %w", l.name, q.key, err)
	}
	return r, nil
}

func (l *Limiter) validate(key string, cost int64) error {
	if err := throttle.ValidateKey(key); err != nil {
		return err
	}
	if cost < 1 {
		return invalid("cost", cost, "1 to %d", l.most)
	}
	if cost > l.most {
		return &NeverError{Cost: cost, Most: l.most}
	}
	return nil
}
