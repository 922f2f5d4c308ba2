// Package throttletest is what throttled work is judged with.
//
// [Measure] is the pace checker: it takes what left or arrived, and tells for
// every key how close the pace came to its limit, the worst excess over any
// window, and what was lost, duplicated or reordered.
//
// [StartRedis], [StartCluster] and [StartSentinel] start private servers on free
// ports of 127.0.0.1, each in a directory of its own, and take them down when
// the test ends. [LaunchRedis], [LaunchCluster] and [LaunchSentinel] do the same
// for benchmarks and programs.
package throttletest
