package throttle

import "time"

// A Receipt tells what became of an enqueued job.
type Receipt struct {
	Key string
	ID  string // of the job that this is about: of one that was there already, if Duplicate
	// State is Waiting or Delayed for a new job; any for a Duplicate, Done among them if
	// its name is still kept; Dropped for one that its key's bound kept out.
	State string
	// Position in the key's line at that moment, 1 for the next to leave; 0 for
	// a job that is delayed, on its way to a worker or running.
	Position int64
	// EstimatedDeparture is when the job leaves if the policy stays and every job
	// ahead leaves at its slot, by the clock of Redis. Zero if only an event can tell, as
	// for a paused key.
	EstimatedDeparture time.Time
	// Expires is when the job ends if it has not departed by then, or by its deadline if it
	// has, by the clock of Redis. Zero for never; of a Duplicate that was not
	// Replaced only Job tells.
	Expires time.Time
	// ExpiresFirst is true when the job expires before it leaves, as estimated: only a
	// shorter line or a higher limit can still have it leave.
	ExpiresFirst bool
	// Duplicate is true when the job, or another of its name, was already there; that
	// one is what the receipt is about.
	Duplicate bool
	// Replaced is true when the new job took the place of one that waited, under whose
	// ID it goes on: see Dedupe.Replace.
	Replaced bool
	// Displaced is the ID of the job that was dropped to make room for this one, in a
	// key whose policy says so.
	Displaced string
}
