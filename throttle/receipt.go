package throttle

import "time"

// A Receipt tells what became of an enqueued job.
type Receipt struct {
	Key string
	ID  string
	// Position in the key's line at that moment, 1 for the next to leave; 0 for
	// a job that is delayed, on its way to a worker or running.
	Position int64
	// EstimatedDeparture is when the job leaves if the policy stays and every job
	// ahead leaves at its slot, by the clock of Redis; what siblings take of a parent
	// is not foreseen. Zero if only an event can tell, as for a paused key.
	EstimatedDeparture time.Time
	// Duplicate is true when a job with this id was already there; that job was
	// left as it is, and Position and EstimatedDeparture are its own.
	Duplicate bool
}
