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
