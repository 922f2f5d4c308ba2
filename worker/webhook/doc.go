// Package webhook delivers events to the endpoints that asked for them, signed after the
// Standard Webhooks specification 1.0.0 (https://www.standardwebhooks.com).
//
// An [Endpoint] is a record in Redis, kept by [Endpoints]. A [Publisher] makes one job of
// each event and endpoint, and a [Handler] makes the calls: it looks the endpoint up and
// signs at every attempt, so a changed URL or secret reaches jobs that wait already, and
// a timestamp is never older than its attempt. Receivers check a call with a [Verifier].
//
// The signed content is "ID.TIMESTAMP.BODY": the body travels byte for byte, and an id has
// no full stop in it.
package webhook
