package throttle

import (
	"hash/fnv"
	"unicode/utf8"
)

// MaxKeyBytes is the longest key, in bytes.
const MaxKeyBytes = 512

// ValidateKey tells whether key can name a bucket: valid UTF-8 of 1 to
// [MaxKeyBytes] bytes. Every character is allowed, braces, spaces, colons and
// control characters included. The error is an [*InvalidError].
func ValidateKey(key string) error {
	switch {
	case key == "":
		return invalid("key", key, "1 to %d bytes", MaxKeyBytes)
	case len(key) > MaxKeyBytes:
		return invalid("key", len(key), "at most %d bytes", MaxKeyBytes)
	case !utf8.ValidString(key):
		return invalid("key", key, "valid UTF-8")
	}
	return nil
}

// shardOf places a key in one of n shards. The choice is part of the stored
// state: it must not change while the number of shards stays the same.
func shardOf(key string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return int(h.Sum32() % uint32(n))
}
