package throttle

import "strings"

// AnyKey is the key of the default policy. It is the pattern without a literal
// character.
const AnyKey = "*"

// ValidatePolicyName tells whether name can name a policy: a key, as with
// [ValidateKey], or a pattern, which is a key with one * that stands for any text,
// the empty one too. The error is an [*InvalidError].
func ValidatePolicyName(name string) error {
	if err := ValidateKey(name); err != nil {
		return err
	}
	if strings.Count(name, "*") > 1 {
		return invalid("key", name, "at most one *, which stands for any text")
	}
	return nil
}

func isPattern(name string) bool { return strings.Contains(name, "*") }

// matches tells whether key is among those that pattern stands for. Without a * it
// stands for itself.
func matches(pattern, key string) bool {
	before, after, found := strings.Cut(pattern, "*")
	if !found {
		return pattern == key
	}
	// What stands before the * and what stands after it may not share bytes of the key.
	return len(key) >= len(before)+len(after) && strings.HasPrefix(key, before) && strings.HasSuffix(key, after)
}

// literal counts the bytes of a pattern other than its *. Of the patterns that match
// a key, the one with the most wins.
func literal(pattern string) int {
	if isPattern(pattern) {
		return len(pattern) - len("*")
	}
	return len(pattern)
}
