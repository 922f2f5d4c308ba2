package webhook

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// mask stands for what is not shown.
const mask = "***"

// String is the kind and a mask, such as "whsec_***".
func (s Secret) String() string {
	k := s.get()
	if k == nil {
		return ""
	}
	return k.prefix + mask
}

// GoString is the same as String.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb: package fmt would show the bytes for some.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON is String in quotes.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UnmarshalText is ParseSecret. What MarshalText wrote is refused.
func (s *Secret) UnmarshalText(text []byte) error {
	parsed, err := ParseSecret(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
