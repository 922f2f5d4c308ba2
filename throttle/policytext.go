package throttle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// storedPolicy is what follows the four numbers of a stored policy, if anything does.
// The scripts read it too; the order of the fields is part of the form.
type storedPolicy struct {
	Quotas  []storedQuota  `json:"q,omitempty"`
	Parent  string         `json:"up,omitempty"`
	Weight  int            `json:"w,omitempty"` // omitted for 1
	Minimum *storedRate    `json:"min,omitempty"`
	Open    *storedMinutes `json:"open,omitempty"`
	Days    []string       `json:"days,omitempty"` // the openings that Open was made from
	Ramp    *storedRamp    `json:"ramp,omitempty"`

	Ordered  bool        `json:"ord,omitempty"`
	Ageing   int64       `json:"age,omitempty"` // µs, as are the others
	TTL      int64       `json:"ttl,omitempty"`
	Most     *storedMost `json:"most,omitempty"`
	History  int         `json:"log,omitempty"`
	KeepDone int64       `json:"keep,omitempty"`

	Listen  string         `json:"say,omitempty"`
	Floor   *storedRate    `json:"floor,omitempty"`
	Circuit *storedCircuit `json:"cut,omitempty"`
	Events  bool           `json:"ev,omitempty"`
}

type storedCircuit struct {
	Failures      int
	Ratio         float64
	Rest, Disable int64 // µs
}

type storedQuota struct {
	Limit, Per   int64  // Per in µs
	Window, Zone string // "s" or "f"; empty for UTC
}

type storedRate struct{ Cost, Per int64 } // Per in µs

type storedRamp struct {
	From float64
	Over int64 // µs
}

// storedMinutes are a zone, empty for UTC, and the minutes of [Hours].
type storedMinutes struct {
	Zone    string
	Minutes []int
}

// storedMost is how many jobs may wait, and a letter for what becomes of more.
type storedMost struct {
	Waiting  int64
	Overflow string
}

// The letters that stand for windows, overflows and ways to listen.
var (
	storedListening = map[Listening]string{Ignore: "x", Adapt: "a"} // Obey is none
	storedWindows   = map[Window]string{Sliding: "s", Fixed: "f"}
	storedOverflows = map[Overflow]string{Refuse: "r", DropOldest: "o", DropNewest: "n"}
)

func (q storedQuota) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{q.Limit, q.Per, q.Window, q.Zone})
}

func (q *storedQuota) UnmarshalJSON(data []byte) error {
	return readList(data, &q.Limit, &q.Per, &q.Window, &q.Zone)
}

func (r storedRate) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.Cost, r.Per}) }

func (r *storedRate) UnmarshalJSON(data []byte) error { return readList(data, &r.Cost, &r.Per) }

func (r storedRamp) MarshalJSON() ([]byte, error) { return json.Marshal([]any{r.From, r.Over}) }

func (r *storedRamp) UnmarshalJSON(data []byte) error { return readList(data, &r.From, &r.Over) }

func (c storedCircuit) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{c.Failures, c.Ratio, c.Rest, c.Disable})
}

func (c *storedCircuit) UnmarshalJSON(data []byte) error {
	return readList(data, &c.Failures, &c.Ratio, &c.Rest, &c.Disable)
}

func (m storedMost) MarshalJSON() ([]byte, error) { return json.Marshal([]any{m.Waiting, m.Overflow}) }

func (m *storedMost) UnmarshalJSON(data []byte) error { return readList(data, &m.Waiting, &m.Overflow) }

func (m storedMinutes) MarshalJSON() ([]byte, error) {
	list := []any{m.Zone}
	for _, minute := range m.Minutes {
		list = append(list, minute)
	}
	return json.Marshal(list)
}

func (m *storedMinutes) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	m.Minutes = make([]int, max(0, len(list)-1))
	values := []any{&m.Zone}
	for i := range m.Minutes {
		values = append(values, &m.Minutes[i])
	}
	return readList(data, values...)
}

// readList reads a JSON list of exactly as many values as there are places for, none
// of them null.
func readList(data []byte, into ...any) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != len(into) {
		return fmt.Errorf("%d values in place of %d", len(list), len(into))
	}
	for i, value := range list {
		if bytes.Equal(value, []byte("null")) {
			return errors.New("null in place of a value")
		}
		if err := json.Unmarshal(value, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// text is a valid policy, without its key, as it is stored: "rate period burst max",
// the period in µs, and a space and the JSON of a storedPolicy where there is more.
func (p Policy) text() string {
	p = p.WithDefaults()
	head := fmt.Sprintf("%d %d %d %d", p.Limit.Rate, p.Limit.Period.Microseconds(), p.Limit.Burst, p.MaxInFlight)
	s := storedPolicy{
		Parent: p.Parent, Ordered: p.Ordered, Ageing: p.Ageing.Microseconds(), TTL: p.JobTTL.Microseconds(),
		History: p.History, KeepDone: p.KeepDone.Microseconds(),
	}
	for _, q := range p.Quotas {
		s.Quotas = append(s.Quotas, storedQuota{q.Limit, q.Per.Microseconds(), storedWindows[q.Window], q.Zone})
	}
	if p.Weight != 1 {
		s.Weight = p.Weight
	}
	if p.Minimum != (Rate{}) {
		s.Minimum = &storedRate{p.Minimum.Cost, p.Minimum.Per.Microseconds()}
	}
	if p.Hours != nil {
		s.Open = &storedMinutes{p.Hours.Zone, p.Hours.weekMinutes()}
		for _, o := range p.Hours.Open {
			s.Days = append(s.Days, o.String())
		}
	}
	if p.Ramp != nil {
		s.Ramp = &storedRamp{p.Ramp.From, p.Ramp.Over.Microseconds()}
	}
	if p.MaxWaiting > 0 {
		s.Most = &storedMost{p.MaxWaiting, storedOverflows[p.Overflow]}
	}
	s.Listen, s.Events = storedListening[p.Listen], p.Events
	if p.Floor != (Rate{}) {
		s.Floor = &storedRate{p.Floor.Cost, p.Floor.Per.Microseconds()}
	}
	if c := p.Circuit; c != nil {
		s.Circuit = &storedCircuit{c.Failures, c.Ratio, c.Rest.Microseconds(), c.Disable.Microseconds()}
	}
	more, err := json.Marshal(s)
	if err != nil { // a ramp that starts at no number: not a valid policy
		panic(fmt.Sprintf("throttle: text of policy %q: %v", p.Key, err))
	}
	if string(more) == "{}" {
		return head
	}
	return head + " " + string(more)
}

var errPolicyText = errors.New("the stored policy is damaged, or written by a newer version")

// policyFromText is the inverse of [Policy.text]; it gives the policy with its
// defaults filled in. Zones are not looked up: this machine may know fewer than the
// one that stored the policy.
func policyFromText(key, text string) (Policy, error) {
	p, err := readPolicy(text)
	if err == nil {
		err = p.validateValues()
	}
	if err != nil {
		// Not wrapped: a refusal in here is of no value that the caller gave.
		return Policy{Key: key}, fmt.Errorf("%w: %q: %s", errPolicyText, text, err.Error())
	}
	p.Key = key
	return p, nil
}

func readPolicy(text string) (Policy, error) {
	parts := strings.SplitN(text, " ", 5)
	if len(parts) < 4 {
		return Policy{}, errors.New("four numbers are wanted")
	}
	var head [4]int64
	for i := range head {
		n, err := strconv.ParseUint(parts[i], 10, 63)
		if err != nil {
			return Policy{}, err
		}
		head[i] = int64(n)
	}
	if head[3] < 1 || head[3] > MaxInFlightBound {
		return Policy{}, fmt.Errorf("%d in flight", head[3])
	}
	p := Policy{
		Limit:       Limit{Rate: head[0], Period: microseconds(head[1]), Burst: head[2]},
		MaxInFlight: int(head[3]),
	}
	if len(parts) == 4 {
		return p, nil
	}
	decoder := json.NewDecoder(strings.NewReader(parts[4]))
	decoder.DisallowUnknownFields()
	var s storedPolicy
	if err := decoder.Decode(&s); err != nil {
		return Policy{}, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Policy{}, errors.New("text after the object")
	}
	if err := s.fill(&p); err != nil {
		return Policy{}, err
	}
	return p.WithDefaults(), nil
}

// fill adds what s has to p. A period below zero is out of bounds as well as zero is, and
// does not come round to a long one.
func (s storedPolicy) fill(p *Policy) error {
	for _, q := range s.Quotas {
		window, err := named(storedWindows, q.Window)
		if err != nil {
			return err
		}
		p.Quotas = append(p.Quotas, Quota{Limit: q.Limit, Per: microseconds(max(0, q.Per)), Window: window, Zone: q.Zone})
	}
	p.Parent, p.Weight = s.Parent, s.Weight
	if s.Minimum != nil {
		p.Minimum = Rate{Cost: s.Minimum.Cost, Per: microseconds(max(0, s.Minimum.Per))}
	}
	if s.Ramp != nil {
		p.Ramp = &Ramp{From: s.Ramp.From, Over: microseconds(max(0, s.Ramp.Over))}
	}
	if err := s.fillWaiting(p); err != nil {
		return err
	}
	if err := s.fillListening(p); err != nil {
		return err
	}
	return s.fillHours(p)
}

// fillListening adds how a policy heeds the other side.
func (s storedPolicy) fillListening(p *Policy) error {
	if s.Listen != "" {
		listen, err := named(storedListening, s.Listen)
		if err != nil {
			return err
		}
		p.Listen = listen
	}
	p.Events = s.Events
	if s.Floor != nil {
		p.Floor = Rate{Cost: s.Floor.Cost, Per: microseconds(max(0, s.Floor.Per))}
	}
	if c := s.Circuit; c != nil {
		if low := min(c.Rest-1, c.Disable); low < 0 {
			return fmt.Errorf("a circuit with a time of %d µs", low)
		}
		p.Circuit = &Circuit{Failures: c.Failures, Ratio: c.Ratio, Rest: microseconds(c.Rest), Disable: microseconds(c.Disable)}
	}
	return nil
}

// fillWaiting adds how jobs wait and what is kept of them.
func (s storedPolicy) fillWaiting(p *Policy) error {
	if low := min(s.Ageing, s.TTL, s.KeepDone); low < 0 { // zero is none
		return fmt.Errorf("a time of %d µs", low)
	}
	p.Ordered, p.Ageing, p.JobTTL = s.Ordered, microseconds(s.Ageing), microseconds(s.TTL)
	p.History, p.KeepDone = s.History, microseconds(s.KeepDone)
	if s.Most == nil {
		return nil
	}
	overflow, err := named(storedOverflows, s.Most.Overflow)
	p.MaxWaiting, p.Overflow = s.Most.Waiting, overflow
	return err
}

func (s storedPolicy) fillHours(p *Policy) error {
	if s.Open == nil {
		if len(s.Days) > 0 {
			return errors.New("days without minutes")
		}
		return nil
	}
	p.Hours = &Hours{Zone: s.Open.Zone}
	for _, text := range s.Days {
		o, err := ParseOpening(text)
		if err != nil {
			return err
		}
		p.Hours.Open = append(p.Hours.Open, o)
	}
	if got, want := fmt.Sprint(s.Open.Minutes), fmt.Sprint(p.Hours.weekMinutes()); got != want {
		return fmt.Errorf("minutes %s in place of %s", got, want)
	}
	return nil
}

// named is what a letter stands for.
func named[T comparable](letters map[T]string, letter string) (name T, err error) {
	for n, l := range letters {
		if l == letter {
			return n, nil
		}
	}
	return name, fmt.Errorf("%T %q", name, letter)
}
