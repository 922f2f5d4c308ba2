package main

import (
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
)

// A destination is one key with its limit, and the events that wait for it.
type destination struct {
	key    string
	limit  throttle.Limit
	events []event
}

// An event is what one webhook tells.
type event struct {
	id   string // of its own within the key
	body []byte
	// refusedOnce: the receiver answers the first attempt with 500.
	refusedOnce bool
}

// refusedEvery of the events of a key is refused once, from the first one on. So
// the last of them is followed by others, whose backlog its retry joins.
const refusedEvery = 10

func newDestination(key string, limit throttle.Limit) destination {
	return destination{key: key, limit: limit}
}

func (d *destination) add(id string, body []byte) {
	d.events = append(d.events, event{id: id, body: body, refusedOnce: len(d.events)%refusedEvery == 0})
}

// attempts is how many calls it takes to deliver the events.
func (d *destination) attempts() int {
	n := len(d.events)
	return n + (n+refusedEvery-1)/refusedEvery
}

// duration is how long the limit makes the attempts take.
func (d *destination) duration() time.Duration {
	waiting := max(0, int64(d.attempts())-d.limit.Burst)
	const longest = 365 * 24 * time.Hour // more than anybody waits, and no overflow
	seconds := float64(waiting) * d.limit.Period.Seconds() / float64(d.limit.Rate)
	return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
}

// madeUp makes events for each limit, as many as it takes that long to deliver.
func madeUp(limits []throttle.Policy, last time.Duration) []destination {
	var all []destination
	for _, p := range limits {
		d := newDestination(p.Key, p.Limit)
		attempts := p.Limit.Burst + int64(last.Seconds()*float64(p.Limit.Rate)/p.Limit.Period.Seconds())
		for n := range int(attempts) * refusedEvery / (refusedEvery + 1) {
			id := fmt.Sprintf("evt_%s_%05d", p.Key, n)
			texts := templates[p.Key]
			at := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC).Add(time.Duration(n) * 7 * time.Second)
			d.add(id, fmt.Appendf(nil, texts[n%len(texts)], id, at.Format(time.RFC3339), n))
		}
		all = append(all, d)
	}
	return all
}

// templates are the payloads: %[1]s is the event's id, %[2]s its instant, %[3]d
// its number.
var templates = map[string][]string{
	"billing": {
		`{"id":"%[1]s","type":"invoice.paid","created":"%[2]s","data":{"invoice":"in_%05[3]d","customer":"cus_%04[3]d","amount":12900,"currency":"eur","lines":[{"description":"Team plan, 12 seats","amount":11400},{"description":"Extra storage","amount":1500}]}}`,
		`{"id":"%[1]s","type":"charge.refunded","created":"%[2]s","data":{"charge":"ch_%05[3]d","amount":-4900,"currency":"usd","reason":"requested_by_customer","note":"Größe passt nicht"}}`,
		`{"id":"%[1]s","type":"subscription.cancelled","created":"%[2]s","data":{"subscription":"sub_%05[3]d","at_period_end":true,"feedback":null}}`,
	},
	"crm": {
		`{"id":"%[1]s","type":"contact.updated","created":"%[2]s","data":{"contact":%[3]d,"changed":{"company":["Müller & Söhne","Müller & Töchter"],"phone":[null,"+49 30 5550%03[3]d"]}}}`,
		`{"id":"%[1]s","type":"deal.won","created":"%[2]s","data":{"deal":"D-%05[3]d","owner":"r.okafor","value":{"amount":"48000.00","currency":"GBP"},"days_open":37}}`,
	},
	"search": {
		`{"id":"%[1]s","type":"document.changed","created":"%[2]s","data":{"index":"products","document":"sku-%06[3]d","fields":["title","price","stock"],"version":%[3]d}}`,
		`{"id":"%[1]s","type":"document.deleted","created":"%[2]s","data":{"index":"articles","document":"post-%06[3]d","tombstone":true}}`,
		`{"id":"%[1]s","type":"synonyms.replaced","created":"%[2]s","data":{"index":"products","synonyms":[["laptop","notebook"],["café","coffee shop"]],"revision":%[3]d}}`,
	},
}
