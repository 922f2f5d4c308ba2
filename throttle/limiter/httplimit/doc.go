// Package httplimit is a limiter in front of an HTTP handler: middleware for net/http, and for
// every router that takes a func(http.Handler) http.Handler.
//
//	store := limiter.NewRedis(client, limiter.RedisConfig{})
//	searches, err := limiter.New(store, "search", limiter.FixedWindow(10, time.Minute))
//	...
//	m, err := httplimit.New(httplimit.Config{Limiter: searches, OnError: httplimit.FailOpen})
//	...
//	mux.Handle("GET /search", m.Handler(search))
//
// # Routes
//
// What a limiter counts is told apart by its name and by the client. Each limit of its own needs
// a limiter with a name of its own, and a Middleware: two routes whose limiters have the same name
// share what is left, whatever their rules. Where that is meant, as for routes of different [Config].Cost
// that draw on one limit, give both the same limiter.
//
// # Clients
//
// A client is known by what [Config].Key says, else by its API key, else by its user, else by its
// IP address. The first three reach the store, logs and errors only as a part of their SHA-256 hash. That hides what is
// hard to guess, such as a key; whoever reads the store can try out names of users.
//
// An API key that nobody has verified lets a caller choose who it is, and so have as many
// limits as it can think of keys. [Config].APIKey must return verified keys only, or the
// middleware must stand behind the one that authenticates. The same is true of [Config].User
// and [Config].Key. What [Config].Skip names, such as health checks, is not limited at all.
//
// # Answers
//
// What the limiter decided, whether it allowed or denied, is answered with these fields:
//
//	X-RateLimit-Limit      most that can pass at once
//	X-RateLimit-Remaining  how much is left
//	X-RateLimit-Reset      when all of it is back, seconds since 1970, rounded up
//	RateLimit-Policy       "search";q=10;w=60
//	RateLimit              "search";r=9;t=33
//
// The last two are those of draft-ietf-httpapi-ratelimit-headers-11. They have a member for each rule of the
// limiter, named after it; where there are several rules it is "search:1", "search:2" and so on. A policy is q per
// w seconds, rounded up to at least one, and for buckets also weir-burst, the most that can pass at once.
// Of what is left, r is how much and t the seconds until all is back, but for what is denied no more
// than Retry-After.
//
// Behind one another several Middlewares each add theirs to RateLimit-Policy and RateLimit; the fields
// with X are those of the innermost.
//
// All fields are set before the next handler runs, which may change them. The ResponseWriter is
// passed on as it is, so streams, Flusher and Hijacker work as without the middleware.
//
// What is not let through is answered by [Config].Deny, or else with a problem (RFC 9457) as
// application/problem+json:
//
//	429  denied: Retry-After, whole seconds, rounded up, at least 1, which is also the member retry_after
//	400  the request costs more than can ever pass, so it is no use to try again
//	503  the store did not answer, and the middleware fails closed; or the client's wait in a queue was cut short
//	500  the Cost function returned less than 1
//
// Nothing is charged for a 400 or 500. The store is not asked, so these answers have no rate limit fields.
//
// # Outages
//
// When the store does not answer within [Config].Timeout, or with an error, [Config].OnError
// decides. An answer that comes later is dropped; what was asked may then have been charged. No rate
// limit fields are sent then, for there is nothing to tell.
//
// # Queues
//
// What a [limiter.LeakyQueue] allows waits for its turn before the next handler runs; t counts from the
// end of that wait. The longest wait is the burst divided by the rate: a server's WriteTimeout has to leave room for
// it. If the client goes meanwhile, its place stays taken.
package httplimit
