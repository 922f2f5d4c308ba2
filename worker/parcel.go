package worker

import (
	"encoding/json"
	"fmt"

	"github.com/weirq/weir/throttle"
)

// parcelType is the type of the asynq tasks that carry parcels.
const parcelType = "weir:parcel"

// taskID is the asynq id of a parcel. asynq takes an id once, which makes handing
// over idempotent.
func taskID(parcel string) string { return "weir:" + parcel }

// wireHold keeps a parcel small: a job is an array of its key, id, release and shard.
type wireHold struct{ throttle.Hold }

func (h wireHold) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Key, h.ID, h.Release, h.Shard})
}

func (h *wireHold) UnmarshalJSON(b []byte) error {
	parts := []any{&h.Key, &h.ID, &h.Release, &h.Shard}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 4 || h.Key == "" || h.ID == "" {
		return fmt.Errorf("a job in a parcel has %d parts: want key, id, release and shard", len(parts))
	}
	return nil
}

func encodeParcel(jobs []throttle.Hold) ([]byte, error) {
	wire := make([]wireHold, len(jobs))
	for i, j := range jobs {
		wire[i] = wireHold{j}
	}
	return json.Marshal(wire)
}

func decodeParcel(payload []byte, shards int) ([]throttle.Hold, error) {
	var wire []wireHold
	if err := json.Unmarshal(payload, &wire); err != nil {
		return nil, fmt.Errorf("decode parcel: %w", err)
	}
	jobs := make([]throttle.Hold, len(wire))
	for i, w := range wire {
		if w.Shard < 0 || w.Shard >= shards {
			return nil, fmt.Errorf("a job in a parcel is in shard %d: there are %d", w.Shard, shards)
		}
		jobs[i] = w.Hold
	}
	return jobs, nil
}
