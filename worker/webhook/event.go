package webhook

import (
	"log/slog"
	"strings"
	"time"
)

// An Event is what happened, for the endpoints to know.
type Event struct {
	// ID is the webhook-id: the same for all endpoints and attempts, and what receivers tell
	// repetitions by. 1 to MaxEventID printable ASCII bytes without spaces, full stops and slashes;
	// empty means a new one, "msg_" and a UUIDv7.
	ID   string
	Type string // such as "invoice.paid", what endpoints choose by; see MaxEventType
	// Data is the body of each call, byte for byte. It is sent as application/json, unless the
	// endpoint has a Content-Type of its own; that it is JSON is not checked.
	Data []byte
	Time time.Time // when it happened; zero means now. For whoever looks at a job: it is not sent
}

// MaxEventID is the longest id of an event, in bytes: with an endpoint's it is that of a job.
const MaxEventID = 64

func newEventID() string { return "msg_" + compactUUID() }

func (e Event) withDefaults() Event {
	if e.ID == "" {
		e.ID = newEventID()
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	return e
}

// Validate tells the first field that is out of bounds, as a [*throttle.InvalidError]. The
// size of Data is for the queue to judge.
func (e Event) Validate() error {
	e = e.withDefaults()
	if !isMessageID(e.ID) || len(e.ID) > MaxEventID || strings.Contains(e.ID, "/") {
		return invalid("id", clip(e.ID), "1 to %d printable ASCII bytes without spaces, full stops and slashes", MaxEventID)
	}
	if !isEventType(e.Type) {
		return invalid("type", clip(e.Type), allowedType)
	}
	if y := e.Time.Year(); y < 1970 || y > 9999 {
		return invalid("time", e.Time.Format(time.RFC3339), "a time in the years 1970 to 9999")
	}
	return nil
}

// LogValue leaves the data out.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", e.ID), slog.String("type", e.Type), slog.Int("bytes", len(e.Data)))
}
