package throttle

import (
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/weirq/weir/throttle/internal/script"
)

// Bounds of a [Job].
const (
	MaxPriority       = 9
	MaxTokenBytes     = 128 // of an ID, a type, a pool or a name
	MaxCost           = 1_000_000_000
	MaxHeaderBytes    = 64 << 10 // names and values together
	DefaultMaxJobSize = 1 << 20  // bytes of payload
)

// A Job is one outbound call that waits its turn under a key.
type Job struct {
	Key     string            // the bucket it leaves through; see ValidateKey
	ID      string            // 1 to MaxTokenBytes printable ASCII bytes without spaces; empty means a new UUIDv7
	Type    string            // what a handler is chosen by, as with asynq.ServeMux
	Payload []byte            // handed to the handler byte for byte
	Headers map[string]string // handed to the handler

	Cost        int64         // cost units; 0 means 1, at most MaxCost
	NotBefore   time.Time     // not to leave earlier than this; zero, or past, means at once
	Timeout     time.Duration // of one attempt; 0 means the worker's default
	MaxAttempts int           // 0 means the worker's default
	// Priority is 0 to MaxPriority, which goes first. A job gains one for each time that
	// it waits for its policy's Ageing: those of a higher priority overtake it only as
	// long as they come less than that, times the difference, after it.
	Priority int
	// TTL is how long it may wait for its first attempt, counted from the enqueue: the time
	// up to NotBefore is part of it. Then it expires: it ends, and costs nothing. 0 means the
	// policy's JobTTL; MinTTL to MaxTTL, and more than a debounce.
	TTL time.Duration
	// Deadline is when all must be over, by the clock of Redis: no attempt begins
	// later, and the context of one that runs ends. A job that had no attempt expires, any
	// other is dead. Zero means none; not before NotBefore. Whether it is past is for Redis
	// to judge: such a job is taken, and its Receipt says that it ExpiresFirst.
	Deadline time.Time
	Dedupe   *Dedupe // nil means: known by its ID until it ends
	Pool     string  // asynq queue whose workers run it, see DefaultPool

	// Policy governs the key where no policy for exactly this key is stored, as long
	// as the key has jobs or its bucket is not empty; that of the latest job counts.
	// Its Key is ignored, and it may have no Parent, Weight or Minimum: those come from
	// stored policies only.
	Policy *Policy
}

// DefaultPool is the asynq queue of a job that names none. A pool carries parcels
// alone: do not share it with asynq tasks of your own.
const DefaultPool = "weir"

// NewJobID makes an id that sorts by its time of making (UUIDv7).
func NewJobID() string { return uuid.Must(uuid.NewV7()).String() }

func (j Job) withDefaults() Job {
	if j.ID == "" {
		j.ID = NewJobID()
	}
	if j.Cost == 0 {
		j.Cost = 1
	}
	if j.Pool == "" {
		j.Pool = DefaultPool
	}
	if j.Policy != nil {
		p := j.Policy.WithDefaults()
		p.Key = j.Key
		j.Policy = &p
	}
	return j
}

func (j Job) headerBytes() (n int) {
	for k, v := range j.Headers {
		n += len(k) + len(v)
	}
	return n
}

// Validate tells the first field that is out of bounds, as an [*InvalidError].
// Fields that may be left out are taken at their defaults. maxSize bounds the
// payload, in bytes.
func (j Job) Validate(maxSize int) error {
	j = j.withDefaults()
	if j.Key == "" {
		return invalid("key", j.Key, "1 to %d bytes; a job without a limit of its own still needs a key", MaxKeyBytes)
	}
	if err := ValidateKey(j.Key); err != nil {
		return err
	}
	if err := validateToken("id", j.ID); err != nil {
		return err
	}
	if err := validateToken("type", j.Type); err != nil {
		return err
	}
	if err := validateToken("pool", j.Pool); err != nil {
		return err
	}
	if j.Cost < 1 || j.Cost > MaxCost {
		return invalid("cost", j.Cost, "1 to %d", int64(MaxCost))
	}
	if n := len(j.Payload); n > maxSize {
		return invalid("payload", n, "at most %d bytes", maxSize)
	}
	if n := j.headerBytes(); n > MaxHeaderBytes {
		return invalid("headers", n, "at most %d bytes, names and values together", MaxHeaderBytes)
	}
	for k, v := range j.Headers {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return invalid("headers", k, "valid UTF-8 names and values")
		}
	}
	if j.Timeout < 0 {
		return invalid("timeout", j.Timeout, "a positive duration, or 0 for the worker's default")
	}
	if j.MaxAttempts < 0 {
		return invalid("max_attempts", j.MaxAttempts, "a positive number, or 0 for the worker's default")
	}
	if err := j.validateTimes(); err != nil {
		return err
	}
	if j.Priority < 0 || j.Priority > MaxPriority {
		return invalid("priority", j.Priority, "0 to %d", MaxPriority)
	}
	if j.Dedupe != nil {
		if err := j.Dedupe.validate(); err != nil {
			return within("dedupe", err)
		}
	}
	if j.Policy != nil {
		if err := j.Policy.validateBrought(); err != nil {
			return within("policy", err)
		}
	}
	return nil
}

func (j Job) validateTimes() error {
	if j.NotBefore.Year() > 2261 {
		return invalid("not_before", j.NotBefore.Format(time.RFC3339), "a time up to the year 2261")
	}
	if !j.Deadline.IsZero() && !storable(j.Deadline) {
		return invalid("deadline", j.Deadline.Format(time.RFC3339), "a time in the years 1970 to 2261")
	}
	if j.TTL != 0 && (j.TTL < MinTTL || j.TTL > MaxTTL) {
		return invalid("ttl", j.TTL, "%v to %v, or 0 for that of the policy", MinTTL, MaxTTL)
	}
	return j.validateLifetime()
}

// validateLifetime refuses jobs that would always expire before their delay is over. A TTL
// and a NotBefore cannot be compared here: the one counts from the enqueue, by the clock of
// Redis.
func (j Job) validateLifetime() error {
	if !j.Deadline.IsZero() && j.Deadline.Before(j.NotBefore) {
		return invalid("deadline", j.Deadline.Format(time.RFC3339), "none before not_before, %s", j.NotBefore.Format(time.RFC3339))
	}
	if j.Dedupe != nil && j.TTL != 0 && j.TTL <= j.Dedupe.Debounce {
		return invalid("ttl", j.TTL, "more than dedupe.debounce, %v: both count from the enqueue", j.Dedupe.Debounce)
	}
	return nil
}

// storable tells whether an instant fits what is stored, and time.Time.UnixNano.
func storable(t time.Time) bool { return t.Year() >= 1970 && t.Year() <= 2261 }

// more is what is out of the ordinary about a job, nil if nothing is.
func (j Job) more() *script.More {
	if j.Priority == 0 && j.TTL == 0 && j.Deadline.IsZero() && j.Dedupe == nil {
		return nil
	}
	m := &script.More{Priority: j.Priority, TTL: j.TTL.Microseconds()}
	if !j.Deadline.IsZero() {
		m.Deadline = max(1, j.Deadline.UnixMicro())
	}
	if j.Dedupe != nil {
		j.Dedupe.fill(m, j)
	}
	return m
}

// validateToken checks what is stored between spaces, at most MaxTokenBytes.
func validateToken(field, s string) error {
	bad := s == "" || len(s) > MaxTokenBytes
	for i := 0; i < len(s) && !bad; i++ {
		bad = s[i] <= ' ' || s[i] > '~'
	}
	if bad {
		if len(s) > MaxTokenBytes {
			return invalid(field, len(s), "at most %d bytes", MaxTokenBytes)
		}
		return invalid(field, s, "1 to %d printable ASCII bytes without spaces", MaxTokenBytes)
	}
	return nil
}
