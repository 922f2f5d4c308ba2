// Package httpjob is the job type that makes one HTTP call: what a call is and
// how it travels as a job, the handler that makes it, and the reader of files
// with one job a line.
//
// The payload of such a job is the body of the request, byte for byte. Its
// headers are those of the request, and two more that stand for the rest of the
// call, named as in HTTP/2: ":url", and ":method", which may be left out for a
// POST. No header that is sent can begin with a colon. So the URL, with the
// password or token it may hold, is among the headers: treat their values as
// secret.
package httpjob
