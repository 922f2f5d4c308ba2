// Package httpjob is the job type that makes one HTTP call: what a call is and
// how it travels as a job, the handler that makes it, and the reader of files
// with one job a line.
//
// The payload of such a job is the body of the request, byte for byte. Its
// headers are those of the request, and up to four more that stand for the rest of
// the call, named like those of HTTP/2: ":url"; ":method", which may be left out for a
// POST; ":success" and ":redirects", which are left out where the call has the
// defaults of [Request]. No header that is sent can begin with a colon. So the URL, with the
// password or token it may hold, is among the headers: treat their values as
// secret.
package httpjob
