package throttle

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/weirq/weir/throttle/internal/script"
)

// Dedupe says which jobs of a key are the same one, for how long, and what a newer one
// does. Without it a job is known by its ID until it ends, and a newer one changes
// nothing.
//
// An ID stays taken as long as its job is there. So where a newer job may come while
// an older one is on its way already, let IDs be new ones and use a Name.
type Dedupe struct {
	// Name is what jobs that are the same have in common: 1 to MaxTokenBytes printable
	// ASCII bytes without spaces. Empty means the ID.
	Name string
	// Content takes type, headers and payload in place of a Name.
	Content bool
	// WhileWaiting frees the name once the job begins its first attempt: a newer one is
	// then a job of its own. Without it the name is free when the job has ended.
	WhileWaiting bool
	// Window keeps the name for so long after the job is done. The name of a job that
	// is dead, cancelled, expired or purged is free at once. 0 means not; 1ms to MaxTTL.
	Window time.Duration
	// Replace puts a newer job in the place of the one that waits for its first attempt:
	// the line goes on as it was, with the newer payload, headers, cost, pool, TTL and
	// deadline, under the ID and the priority that it had. It means WhileWaiting.
	Replace bool
	// Debounce delays a job by this, and each newer one replaces it and delays it anew.
	// It means WhileWaiting. 1ms to MaxTTL; 0 means not.
	Debounce time.Duration
	// MaxDebounce is how long newer jobs can put it off in all. 0 means ten times
	// Debounce.
	MaxDebounce time.Duration
}

func (d Dedupe) validate() error {
	if d.Name != "" {
		if err := validateToken("name", d.Name); err != nil {
			return err
		}
	}
	switch {
	case d.Name != "" && d.Content:
		return invalid("content", d.Content, "false with a name")
	case d.Replace && d.Debounce != 0:
		return invalid("replace", d.Replace, "false with debounce, which replaces as well")
	case d.Window != 0 && (d.WhileWaiting || d.Replace || d.Debounce != 0):
		return invalid("window", d.Window, "none for a name that is free once its job begins")
	case d.MaxDebounce != 0 && (d.Debounce == 0 || d.MaxDebounce < d.Debounce):
		return invalid("max_debounce", d.MaxDebounce, "at least debounce, or 0 for ten times that")
	}
	for _, f := range []struct {
		field string
		d     time.Duration
	}{{"window", d.Window}, {"debounce", d.Debounce}, {"max_debounce", d.MaxDebounce}} {
		if f.d != 0 && (f.d < MinTTL || f.d > MaxTTL) {
			return invalid(f.field, f.d, "%v to %v, or 0 for none", MinTTL, MaxTTL)
		}
	}
	return nil
}

// fill adds to m what d asks for.
func (d Dedupe) fill(m *script.More, j Job) {
	switch {
	case d.Name != "":
		m.Name = "n:" + d.Name
	case d.Content:
		m.Name = "c:" + j.contentHash()
	default:
		m.Name = "i:" + j.ID
	}
	m.Window = d.Window.Microseconds()
	m.WhileWaiting = d.WhileWaiting || d.Replace || d.Debounce > 0
	switch {
	case d.Replace:
		m.Repeat = script.Replace
	case d.Debounce > 0:
		m.Repeat = script.Debounce
		m.Debounce = d.Debounce.Microseconds()
		if m.Most = d.MaxDebounce.Microseconds(); m.Most == 0 {
			m.Most = min(10*m.Debounce, MaxTTL.Microseconds())
		}
	}
}

// contentHash is the SHA-256 of what a handler gets to see.
func (j Job) contentHash() string {
	h := sha256.New()
	add := func(s []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(s))))
		h.Write(s)
	}
	add([]byte(j.Type))
	add(j.Payload)
	for _, name := range slices.Sorted(maps.Keys(j.Headers)) {
		add([]byte(name))
		add([]byte(j.Headers[name]))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
