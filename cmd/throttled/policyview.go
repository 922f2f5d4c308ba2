package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirq/weir/cmd/throttled/internal/config"
	"github.com/weirq/weir/throttle"
)

// A policyView is a policy as --json prints it: the fields of the config file, with
// their defaults filled in.
type policyView struct {
	Key         string      `json:"key"`
	Source      string      `json:"source,omitempty"`
	Rate        string      `json:"rate"`
	Burst       int64       `json:"burst"`
	MaxInFlight int         `json:"max_in_flight"`
	Quotas      []quotaView `json:"quotas,omitempty"`
	Parent      string      `json:"parent,omitempty"`
	Weight      int         `json:"weight,omitempty"`
	Minimum     string      `json:"minimum,omitempty"`
	Hours       *hoursView  `json:"hours,omitempty"`
	Ramp        *rampView   `json:"ramp,omitempty"`
	Ordered     bool        `json:"ordered,omitempty"`
	Ageing      string      `json:"ageing"`
	JobTTL      string      `json:"job_ttl,omitempty"`
	MaxWaiting  int64       `json:"max_waiting,omitempty"`
	Overflow    string      `json:"overflow,omitempty"`
	History     int         `json:"history,omitempty"`
	KeepDone    string      `json:"keep_done,omitempty"`

	Events  bool         `json:"events,omitempty"`
	Listen  string       `json:"listen"`
	Floor   string       `json:"floor,omitempty"`
	Circuit *circuitView `json:"circuit,omitempty"`
}

type circuitView struct {
	Failures int    `json:"failures,omitempty"`
	Ratio    string `json:"ratio,omitempty"`
	Rest     string `json:"rest"`
	Disable  string `json:"disable,omitempty"`
}

func (c circuitView) String() string {
	parts := []string{}
	if c.Failures > 0 {
		parts = append(parts, fmt.Sprintf("%d failures", c.Failures))
	}
	if c.Ratio != "" {
		parts = append(parts, c.Ratio)
	}
	text := strings.Join(parts, " or ") + ", rest " + c.Rest
	if c.Disable != "" {
		text += ", disable " + c.Disable
	}
	return text
}

type quotaView struct {
	Limit  int64  `json:"limit"`
	Per    string `json:"per"`
	Window string `json:"window"`
	Zone   string `json:"zone,omitempty"`
	text   string // for tables
}

type hoursView struct {
	Zone string   `json:"zone"`
	Open []string `json:"open"`
}

type rampView struct {
	From string `json:"from"`
	Over string `json:"over"`
}

const utc = "UTC"

func viewOf(p throttle.Policy, source throttle.Source) policyView {
	p = p.WithDefaults()
	v := policyView{
		Key: p.Key, Source: string(source),
		Rate: throttle.FormatRate(p.Limit.Rate, p.Limit.Period), Burst: p.Limit.Burst, MaxInFlight: p.MaxInFlight,
		Parent: p.Parent, Weight: p.Weight, Minimum: p.Minimum.String(),
		Ordered: p.Ordered, Ageing: brief(cmp.Or(p.Ageing, throttle.DefaultAgeing)),
		JobTTL: briefUnlessZero(p.JobTTL), MaxWaiting: p.MaxWaiting, Overflow: string(p.Overflow),
		History: p.History, KeepDone: briefUnlessZero(p.KeepDone),
		Events: p.Events, Listen: string(cmp.Or(p.Listen, throttle.Obey)), Floor: p.Floor.String(),
	}
	if c := p.Circuit; c != nil {
		v.Circuit = &circuitView{Failures: c.Failures, Rest: brief(c.Rest), Disable: briefUnlessZero(c.Disable)}
		if c.Ratio > 0 {
			v.Circuit.Ratio = config.FormatPercent(c.Ratio)
		}
	}
	for _, q := range p.Quotas {
		v.Quotas = append(v.Quotas, quotaView{
			Limit: q.Limit, Per: brief(q.Per), Window: string(q.Window), Zone: q.Zone, text: q.String(),
		})
	}
	if p.Hours != nil {
		v.Hours = &hoursView{Zone: p.Hours.Zone}
		if v.Hours.Zone == "" {
			v.Hours.Zone = utc
		}
		for _, o := range p.Hours.Open {
			v.Hours.Open = append(v.Hours.Open, o.String())
		}
	}
	if p.Ramp != nil {
		v.Ramp = &rampView{From: config.FormatPercent(p.Ramp.From), Over: brief(p.Ramp.Over)}
	}
	return v
}

func briefUnlessZero(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return brief(d)
}

// A policyField is a field of a policy as a table shows it.
type policyField struct{ name, text string }

// none stands for a field that a policy does not have.
const none = "-"

// fields are those of a policy, in the order and under the names of the config file.
func (v policyView) fields() []policyField {
	fields := []policyField{
		{"rate", v.Rate}, {"burst", fmt.Sprint(v.Burst)}, {"max_in_flight", fmt.Sprint(v.MaxInFlight)},
		{"quotas", v.quotas()}, {"parent", none}, {"weight", none}, {"minimum", none}, {"hours", none}, {"ramp", none},
		{"ordered", none}, {"ageing", v.Ageing}, {"job_ttl", orNone(v.JobTTL)}, {"max_waiting", none},
		{"overflow", orNone(v.Overflow)}, {"history", none}, {"keep_done", orNone(v.KeepDone)},
		{"events", none}, {"listen", v.Listen}, {"floor", orNone(v.Floor)}, {"circuit", none},
	}
	set := func(name, text string) {
		for i := range fields {
			if fields[i].name == name {
				fields[i].text = text
			}
		}
	}
	if v.Parent != "" {
		set("parent", shown(v.Parent))
		set("weight", fmt.Sprint(v.Weight))
	}
	if v.Minimum != "" {
		set("minimum", v.Minimum)
	}
	if v.Hours != nil {
		set("hours", strings.Join(v.Hours.Open, ", ")+" "+v.Hours.Zone)
	}
	if v.Ramp != nil {
		set("ramp", v.Ramp.From+" "+v.Ramp.Over)
	}
	if v.Ordered {
		set("ordered", "true")
	}
	if v.MaxWaiting > 0 {
		set("max_waiting", fmt.Sprint(v.MaxWaiting))
	}
	if v.Events {
		set("events", "true")
	}
	if v.Circuit != nil {
		set("circuit", v.Circuit.String())
	}
	if v.History > 0 {
		set("history", fmt.Sprint(v.History))
	}
	return fields
}

func (v policyView) quotas() string {
	if len(v.Quotas) == 0 {
		return none
	}
	texts := make([]string, len(v.Quotas))
	for i, q := range v.Quotas {
		texts[i] = q.text
	}
	return strings.Join(texts, ", ")
}

// summary has the fields that a policy has in one line.
func (v policyView) summary() string { return inLine(v.fields()) }

// inLine is fields with their names. What all have by default goes unsaid.
func inLine(fields []policyField) string {
	usual := []policyField{{"ageing", brief(throttle.DefaultAgeing)}, {"listen", string(throttle.Obey)}}
	var parts []string
	for _, f := range fields {
		if f.text != none && !slices.Contains(usual, f) {
			parts = append(parts, f.name+" "+f.text)
		}
	}
	return strings.Join(parts, ", ")
}

// titles and cells are a policy as a row of a table. What few policies have shares the
// last column, as more columns would not fit on a screen.
func titles() []string {
	return []string{"RATE", "BURST", "MAX IN FLIGHT", "QUOTAS", "PARENT", "WEIGHT", "MINIMUM", "HOURS", "RAMP", "FURTHER"}
}

func (v policyView) cells() (cells []string) {
	fields, own := v.fields(), len(titles())-1
	for _, f := range fields[:own] {
		cells = append(cells, f.text)
	}
	return append(cells, orNone(inLine(fields[own:])))
}

// inForce is the policy in force for a name and where it comes from. One that a job
// brought has a stored one to say whose cap its key shares.
func inForce(e throttle.Explanation) (throttle.Policy, throttle.Source) {
	p := e.Candidates[0].Policy
	if e.Candidates[0].Source == throttle.Brought && len(e.Candidates) > 1 {
		stored := e.Candidates[1].Policy
		p.Parent, p.Weight, p.Minimum = stored.Parent, stored.Weight, stored.Minimum
	}
	return p, e.Candidates[0].Source
}
