// Package throttle holds outbound jobs back until their key's limit lets them go.
//
// The model first. Every key owns a leaky bucket: a level that leaks at a constant
// rate, and a burst, the most it may hold. A job of cost c may leave when level + c
// <= burst, and raises the level by c. Jobs over the limit wait in the bucket, in
// the order they came. So in every window of length t at most burst + rate×t cost
// leaves, and under a backlog the rate is used in full.
//
// Four moves take a job through, each one Lua script on Redis:
//
//   - [Queue.Enqueue] puts it into its bucket and answers with a [Receipt].
//   - [Scheduler] releases it a little before its slot and hands it to a
//     [Dispatcher], which carries it to a worker.
//   - [Permits.Depart] gives it its exact slot and charges the bucket: this, not
//     release, is what the limit counts.
//   - [Permits.Finish] ends the attempt. A retry goes back into the bucket and
//     leaves under the same limit as everything else.
//
// Redis' clock decides everything; the clocks of the processes do not matter. Any
// number of processes may run any of the parts. Delivery is at least once: a job is
// run again if whoever held it stopped renewing its lease.
//
// The package knows nothing of how jobs travel or what they do: package worker
// carries them over asynq and runs them.
package throttle
