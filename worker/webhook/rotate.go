package webhook

import (
	"context"
	"slices"
	"time"
)

// MaxKeep is the longest that a secret that is replaced stays valid.
const MaxKeep = 30 * 24 * time.Hour

// RotateSecret has an endpoint sign with next from now on, a new symmetric secret if it is zero,
// and for so long with the former ones too, 0 to MaxKeep. 0 is for a secret that got known: calls of the next
// two seconds may still be signed with it. A call with the same next may be repeated: it
// lets the former secrets end no later than before.
func (s *Endpoints) RotateSecret(ctx context.Context, id string, next Secret, keep time.Duration) (Endpoint, error) {
	if keep < 0 || keep > MaxKeep {
		return Endpoint{}, invalid("keep", keep, "0 to %v", MaxKeep)
	}
	if next.IsZero() {
		next = NewSecret()
	}
	if !next.CanSign() {
		return Endpoint{}, cannotSign("secret", next)
	}
	e, err := s.update(ctx, id, func(e *Endpoint, now time.Time) error {
		e.Secrets = rotated(e.Secrets, next, now, now.Add(keep))
		if n := len(e.Secrets); n > MaxSecrets {
			return invalid("keep", keep, "a shorter one: there would be %d secrets, and may be %d", n, MaxSecrets)
		}
		return nil
	})
	if err != nil {
		return Endpoint{}, failed("rotate the secret of", id, err)
	}
	return e, nil
}

// rotated puts a secret in front of those that are valid for a while yet.
func rotated(secrets []EndpointSecret, next Secret, now, until time.Time) []EndpointSecret {
	list := []EndpointSecret{{Secret: next}}
	for _, s := range secrets {
		if s.Until.IsZero() || s.Until.After(until) {
			s.Until = until
		}
		if s.Until.After(now) && !s.Secret.Equal(next) {
			list = append(list, s)
		}
	}
	return slices.Clip(list)
}
