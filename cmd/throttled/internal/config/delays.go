package config

import (
	"strings"
	"time"

	"github.com/weirq/weir/worker"
)

// standardDelays is short for those of the Standard Webhooks specification.
const standardDelays = "standard"

// delays reads those between attempts, with commas between them.
func delays(in *[]time.Duration) field {
	value := func() any {
		texts := make([]string, len(*in))
		for i, d := range *in {
			texts[i] = short(d)
		}
		return strings.Join(texts, ",")
	}
	want := "durations from 1ms to 8784h with commas between them, such as 5s,5m,30m,2h, or " + standardDelays
	return field{want: want, value: value, set: func(text string) bool {
		var all []time.Duration
		switch text {
		case "":
		case standardDelays:
			all = worker.StandardDelays()
		default:
			for one := range strings.SplitSeq(text, ",") {
				d, err := time.ParseDuration(strings.TrimSpace(one))
				if err != nil || d < time.Millisecond || d > 366*day {
					return false
				}
				all = append(all, d)
			}
		}
		*in = all
		return true
	}}
}
