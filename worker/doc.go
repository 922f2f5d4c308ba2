// Package worker carries released jobs over asynq and runs them.
//
// A [Dispatcher] turns the parcels of a [throttle.Scheduler] into asynq tasks. A
// [Server] takes them, lets each job leave at its slot, runs its handler and ends
// its attempt. Handlers are plain [asynq.Handler] values, chosen by job type with
// [asynq.ServeMux]: they see a task with the job's own type, payload and headers.
//
// What a handler returns decides what becomes of the job: see [Outcome].
package worker
