package throttle

import "time"

// utc is the zone that an empty name stands for.
const utc = "UTC"

// maxZoneBytes is more than the longest IANA name has.
const maxZoneBytes = 64

// A zoneOffset is what a zone's clocks show from an instant on.
type zoneOffset struct {
	From   int64 // the instant, in µs since 1970 UTC
	Offset int64 // µs to add to UTC
}

// The years whose offsets are known to the scripts. Before and after them the first
// and the last offset stand.
var (
	zonesFrom  = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	zonesUntil = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// normalZone writes UTC in one way, the empty one.
func normalZone(name string) string {
	if name == utc {
		return ""
	}
	return name
}

// loadZone finds a zone by its IANA name; empty is UTC.
func loadZone(name string) (*time.Location, error) {
	const allowed = "an IANA time zone such as Europe/Berlin, or UTC"
	if len(name) > maxZoneBytes {
		return nil, invalid("zone", len(name), "an IANA time zone of at most %d bytes", maxZoneBytes)
	}
	// IANA names begin with a capital. What else lies in a zone directory, such as
	// localtime or the leap-second clocks under right/, depends on the machine; so does
	// Local.
	if name != "" && (name[0] < 'A' || name[0] > 'Z' || name == "Local") {
		return nil, invalid("zone", name, allowed)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, invalid("zone", name, allowed)
	}
	return zone, nil
}

func validateZone(name string) error {
	_, err := loadZone(name)
	return err
}

// zoneOffsets lists the offsets of a zone from 2020 to 2100, in the order of time.
// The first holds from the beginning of 2020. The error is an [*InvalidError].
func zoneOffsets(name string) ([]zoneOffset, error) {
	zone, err := loadZone(name)
	if err != nil {
		return nil, err
	}
	var offsets []zoneOffset
	for at := zonesFrom.In(zone); at.Before(zonesUntil); {
		_, seconds := at.Zone()
		offset := int64(seconds) * time.Second.Microseconds()
		// Some changes are of the zone's abbreviation alone.
		if n := len(offsets); n == 0 || offsets[n-1].Offset != offset {
			offsets = append(offsets, zoneOffset{From: at.UnixMicro(), Offset: offset})
		}
		_, end := at.ZoneBounds()
		if end.IsZero() {
			break
		}
		// Go takes every year to have 365 days where it goes by a zone's rule: on the last
		// day of a leap year the end has passed. No zone changes then.
		if !end.After(at) {
			end = at.Add(time.Hour)
		}
		at = end
	}
	return offsets, nil
}
