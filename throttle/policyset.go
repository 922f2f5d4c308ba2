package throttle

import (
	"errors"
	"fmt"
)

// MaxLevels is the most levels of caps: a key, its parent, the parent's parent and one
// more.
const MaxLevels = 4

// minimumSlack is how far above the parent's rate a sum of minimums may seem to lie:
// more than adding fractions in floating point errs by, less than anybody could tell.
const minimumSlack = 1e-9

// ValidatePolicies tells what is wrong with the policies of a config file, each on its
// own and all of them together, without a look at what is stored: [Queue.SetPolicies]
// also refuses what goes against the live policies. The error is an [*InvalidError]
// whose Field is a path such as "policies[2].parent"; it is nil for no policies.
func ValidatePolicies(policies []Policy) error {
	if err := validateSet(policies); err != nil {
		return err
	}
	for i, p := range policies {
		if err := p.validateZones(); err != nil {
			return within(fmt.Sprintf("policies[%d]", i), err)
		}
	}
	return nil
}

// MaxPatterns bounds how many policies are for patterns, [AnyKey] apart: each is
// compared with every key that has no policy of its own.
const MaxPatterns = 1000

// validateSet checks each policy, apart from the zones that it names, and what they ask of each other: one for a name, every
// parent an exact policy of the set, no loops, at most MaxLevels, and no more minimums
// than a parent can keep to. The error is an [*InvalidError] on policies[i]....
//
// Patterns need no look of their own for loops: a parent has an exact policy, which
// comes before any pattern that matches it, so all above a parent are exact policies.
func validateSet(policies []Policy) error {
	byKey, patterns := make(map[string]Policy, len(policies)), 0
	for i, p := range policies {
		place := fmt.Sprintf("policies[%d]", i)
		if err := errors.Join(ValidatePolicyName(p.Key), p.validateValues()); err != nil {
			return within(place, err)
		}
		if isPattern(p.Key) && p.Key != AnyKey {
			patterns++
		}
		if patterns > MaxPatterns {
			return within(place, invalid("key", p.Key, "at most %d patterns", MaxPatterns))
		}
		if _, taken := byKey[p.Key]; taken {
			return within(place, invalid("key", p.Key, "one policy a key"))
		}
		byKey[p.Key] = p
	}
	promised := make(map[string]float64) // parent to the sum of its children's minimums
	for i, p := range policies {
		if p.Parent == "" {
			continue
		}
		place := fmt.Sprintf("policies[%d]", i)
		if err := validateParents(p, byKey); err != nil {
			return within(place, err)
		}
		if err := validateMinimum(p, byKey[p.Parent], promised); err != nil {
			return within(place, err)
		}
	}
	return nil
}

// validateParents follows p to the one that has no parent.
func validateParents(p Policy, byKey map[string]Policy) error {
	seen := map[string]bool{p.Key: true}
	for next := p.Parent; next != ""; {
		above, found := byKey[next]
		switch {
		case !found && next == p.Parent:
			return invalid("parent", p.Parent, "a key that has a policy of its own")
		case !found: // told where it is named
			return nil
		case seen[next]:
			return invalid("parent", p.Parent, "no loop: the parents of %q lead back to %q", p.Parent, next)
		}
		seen[next] = true
		next = above.Parent
	}
	if levels := len(seen); levels > MaxLevels {
		return invalid("parent", p.Parent, "at most %d levels, and this makes %d", MaxLevels, levels)
	}
	return nil
}

// validateMinimum adds the minimum of p to what its parent has promised. Those of
// patterns do not count, as nobody knows for how many keys they will stand.
func validateMinimum(p, parent Policy, promised map[string]float64) error {
	if p.Minimum == (Rate{}) {
		return nil
	}
	if p.Minimum.above(parent.rate()) {
		return invalid("minimum", p.Minimum.String(), "at most the rate of parent %q, %v", p.Parent, parent.rate())
	}
	if isPattern(p.Key) {
		return nil
	}
	promised[p.Parent] += p.Minimum.perMicrosecond()
	if promised[p.Parent] > parent.rate().perMicrosecond()*(1+minimumSlack) {
		return invalid("minimum", p.Minimum.String(), "no more, with the minimums of the other keys, than the rate of parent %q, %v", p.Parent, parent.rate())
	}
	return nil
}
