package throttle

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// record is how a job is stored: one line of JSON with all but the payload, then
// the payload as it is. Key and id are not in it: they are its address.
type record struct {
	Type        string            `json:"type"`
	Headers     map[string]string `json:"headers,omitempty"`
	Cost        int64             `json:"cost,omitempty"`    // omitted for 1
	Timeout     int64             `json:"timeout,omitempty"` // ns
	MaxAttempts int               `json:"max_attempts,omitempty"`
	EnqueuedAt  int64             `json:"at"` // µs, by the producer's clock: for people, decides nothing
}

var errRecord = errors.New("the stored job is damaged")

func encodeJob(j Job, now time.Time) ([]byte, error) {
	r := record{
		Type: j.Type, Headers: j.Headers, Timeout: int64(j.Timeout),
		MaxAttempts: j.MaxAttempts, EnqueuedAt: now.UnixMicro(),
	}
	if j.Cost != 1 {
		r.Cost = j.Cost
	}
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(line)+1+len(j.Payload))
	return append(append(append(out, line...), '\n'), j.Payload...), nil
}

func decodeJob(key, id string, stored string) (Job, error) {
	line, payload, found := bytes.Cut([]byte(stored), []byte{'\n'})
	var r record
	if !found || json.Unmarshal(line, &r) != nil || r.Type == "" {
		return Job{Key: key, ID: id, Cost: 1}, errRecord
	}
	if r.Cost == 0 {
		r.Cost = 1
	}
	return Job{
		Key: key, ID: id, Type: r.Type, Headers: r.Headers, Payload: payload, Cost: r.Cost,
		Timeout: time.Duration(r.Timeout), MaxAttempts: r.MaxAttempts,
	}, nil
}
