package main

import "strings"

// redacted is a Redis URL without what may be secret: user, password and options.
func redacted(rawURL string) string {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found {
		return "…"
	}
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}
