// Package upstream reads from an HTTP answer what the other side says about its
// pace: that a call was over a limit, how long to rest, and what is left of a
// quota. It only reads: what follows from it is up to the caller.
//
// It knows Retry-After, the RateLimit and RateLimit-Policy fields of
// draft-ietf-httpapi-ratelimit-headers and those of its older versions, the
// X-RateLimit headers in their dialects, and the names that Shopify, Anthropic and
// the APIs like OpenAI's have for them. What cannot be read is as if it was not there.
package upstream
