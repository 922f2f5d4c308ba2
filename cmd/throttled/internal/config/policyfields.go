package config

import (
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
)

// policyOrder is the order in which errors list the fields of policies and of what is
// in them.
var policyOrder = []string{
	"key", "rate", "burst", "max_in_flight", "quotas", "parent", "weight", "minimum", "hours", "ramp",
	"ordered", "ageing", "job_ttl", "max_waiting", "overflow", "history", "keep_done",
	"events", "listen", "floor", "circuit",
	"limit", "per", "window", "zone", "open", "from", "over", "failures", "ratio", "rest", "disable",
}

// fieldNames are the names of fields and others in the order of policyOrder.
func fieldNames[F, O any](fields map[string]F, others map[string]O) (names []string) {
	for _, name := range policyOrder {
		_, isField := fields[name]
		_, isOther := others[name]
		if isField || isOther {
			names = append(names, name)
		}
	}
	return names
}

// policyFields are those of one entry of the policies that have one value.
func policyFields(p *throttle.Policy) map[string]field {
	return map[string]field{
		"key": {
			want: fmt.Sprintf(`text of 1 to %d bytes: an exact key, a pattern with one * for any text, or "*" for all keys without a policy of their own`, throttle.MaxKeyBytes),
			set: func(text string) bool {
				p.Key = text
				return throttle.ValidatePolicyName(text) == nil
			},
		},
		"rate":          rate(&p.Limit.Rate, &p.Limit.Period),
		"burst":         whole(&p.Limit.Burst, 1, throttle.MaxBurst),
		"max_in_flight": whole(&p.MaxInFlight, 1, throttle.MaxInFlightBound),
		"parent": {
			want: fmt.Sprintf("text of 1 to %d bytes: the exact key of another policy, without *", throttle.MaxKeyBytes),
			set: func(text string) bool {
				p.Parent = text
				return throttle.ValidateKey(text) == nil
			},
		},
		"weight":  whole(&p.Weight, 1, throttle.MaxWeight),
		"minimum": rate(&p.Minimum.Cost, &p.Minimum.Per),
		"ordered": flag(&p.Ordered),
		"ageing":  milliseconds(&p.Ageing, throttle.MinAgeing, throttle.MaxAgeing),
		"job_ttl": milliseconds(&p.JobTTL, throttle.MinTTL, throttle.MaxTTL),

		"max_waiting": whole(&p.MaxWaiting, 1, throttle.MaxWaitingBound),
		"overflow": {
			want: fmt.Sprintf("%s, %s or %s", throttle.Refuse, throttle.DropOldest, throttle.DropNewest),
			set: func(text string) bool {
				var err error
				p.Overflow, err = throttle.ParseOverflow(text)
				return err == nil
			},
		},
		"history":   whole(&p.History, 1, throttle.MaxHistory),
		"keep_done": milliseconds(&p.KeepDone, throttle.MinKeepDone, throttle.MaxKeepDone),

		"events": flag(&p.Events),
		"listen": {
			want: fmt.Sprintf("%s, %s or %s", throttle.Ignore, throttle.Obey, throttle.Adapt),
			set: func(text string) bool {
				p.Listen = throttle.Listening(text)
				return p.Listen == throttle.Ignore || p.Listen == throttle.Obey || p.Listen == throttle.Adapt
			},
		},
		"floor": rate(&p.Floor.Cost, &p.Floor.Per),
	}
}

func quotaFields(q *throttle.Quota) map[string]field {
	return map[string]field{
		"limit": whole(&q.Limit, 1, throttle.MaxRate),
		"per":   milliseconds(&q.Per, throttle.MinQuotaPeriod, throttle.MaxQuotaPeriod),
		"window": {want: string(throttle.Sliding) + " or " + string(throttle.Fixed), set: func(text string) bool {
			q.Window = throttle.Window(text)
			return q.Window == throttle.Sliding || q.Window == throttle.Fixed
		}},
		"zone": zone(&q.Zone),
	}
}

func hoursFields(h *throttle.Hours) map[string]field {
	return map[string]field{"zone": zone(&h.Zone)}
}

func rampFields(r *throttle.Ramp) map[string]field {
	return map[string]field{
		"from": {want: "a percentage of the rate above 0% and below 100%, such as 10%", set: func(text string) (ok bool) {
			r.From, ok = ParsePercent(text)
			return ok
		}},
		"over": milliseconds(&r.Over, throttle.MinRamp, throttle.MaxRamp),
	}
}

func circuitFields(c *throttle.Circuit) map[string]field {
	return map[string]field{
		"failures": whole(&c.Failures, 1, throttle.MaxFailures),
		"ratio": {want: "a percentage of the calls above 0% and below 100%, such as 50%", set: func(text string) (ok bool) {
			c.Ratio, ok = ParsePercent(text)
			return ok
		}},
		"rest":    milliseconds(&c.Rest, throttle.MinRest, throttle.MaxRest),
		"disable": milliseconds(&c.Disable, throttle.MinRest, throttle.MaxDisable),
	}
}

// wanted tells what is allowed as a field, or as a list among the others.
func wanted(fields map[string]field, name string) string {
	if name == "open" {
		return "a list of openings, such as [\"mon-fri 09:00-18:00\"]"
	}
	return fields[name].want
}

func rate(cost *int64, per *time.Duration) field {
	want := fmt.Sprintf("N/s, N/m, N/h, N/d or N/DURATION, such as 100/s or 1/24h, with N a whole number from 1 to %d and DURATION from %s to %s",
		throttle.MaxRate, short(throttle.MinPeriod), short(throttle.MaxPeriod))
	return field{want: want, set: func(text string) bool {
		var err error
		*cost, *per, err = throttle.ParseRate(text)
		return err == nil
	}}
}

// milliseconds is a span of whole ones.
func milliseconds(in *time.Duration, shortest, longest time.Duration) field {
	f := span(in, shortest, longest)
	f.want += ", in whole milliseconds"
	inBounds := f.set
	f.set = func(text string) bool { return inBounds(text) && *in%time.Millisecond == 0 }
	return f
}

// zone reads the name of a time zone.
func zone(in *string) field {
	return field{want: "an IANA time zone such as Europe/Berlin, or UTC", set: func(text string) bool {
		*in = text
		all := []throttle.Opening{{To: day}}
		return text != "" && throttle.Hours{Zone: text, Open: all}.Validate() == nil
	}}
}

func opening(in *throttle.Opening) field {
	return field{want: "HH:MM-HH:MM, or days before it as in mon-fri 09:00-18:00 or sat,sun 22:00-02:00", set: func(text string) bool {
		var err error
		*in, err = throttle.ParseOpening(text)
		return err == nil
	}}
}
