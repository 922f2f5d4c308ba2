// Package httpjob is the job type that makes one HTTP call: what a call is and
// how it travels as the payload of a job, the handler that makes it, and the
// reader of files with one job a line.
package httpjob
