package main

import (
	"time"

	"github.com/weirq/weir/throttle"
)

// A verificationView is a verification as --json prints it.
type verificationView struct {
	Key         string          `json:"key"`
	Clean       bool            `json:"clean"`
	From        string          `json:"from,omitempty"`
	To          string          `json:"to,omitempty"`
	Departures  int             `json:"departures"`
	Cost        float64         `json:"cost"`
	Settlements int             `json:"settlements"`
	Allowed     float64         `json:"allowed"`
	Used        float64         `json:"used"`
	BusySeconds float64         `json:"busy_seconds"`
	Pace        float64         `json:"pace"`
	Damaged     int             `json:"damaged"`
	Unjudged    int             `json:"unjudged"`
	Unchecked   []string        `json:"unchecked"`
	Quotas      []quotaUseView  `json:"quotas"`
	Violations  []violationView `json:"violations"`
	Forced      []forcedView    `json:"forced"`
}

type quotaUseView struct {
	Quota string  `json:"quota"`
	Most  float64 `json:"most"`
	Used  float64 `json:"used"`
	From  string  `json:"from,omitempty"`
	To    string  `json:"to,omitempty"`
}

type violationView struct {
	What    string     `json:"what"`
	From    string     `json:"from"`
	To      string     `json:"to"`
	Cost    float64    `json:"cost"`
	Allowed float64    `json:"allowed"`
	Early   int        `json:"early"`
	Jobs    []string   `json:"jobs"`
	Policy  policyView `json:"policy"`
}

type forcedView struct {
	At   string `json:"at"`
	ID   string `json:"id"`
	Key  string `json:"key"`
	Cost int64  `json:"cost"`
}

func verificationOf(h throttle.History, v throttle.Verification) verificationView {
	view := verificationView{
		Key: v.Key, Clean: v.OK(), From: exactUnlessZero(v.From), To: exactUnlessZero(v.To),
		Departures: v.Departures, Cost: v.Cost, Settlements: v.Settlements,
		Allowed: v.Allowed, Used: v.Used, BusySeconds: v.Busy.Seconds(), Pace: v.Pace,
		Damaged: v.Damaged, Unjudged: v.Unjudged, Unchecked: append([]string{}, v.Unchecked...),
		Quotas: []quotaUseView{}, Violations: []violationView{}, Forced: forcedOf(h),
	}
	for _, u := range v.Quotas {
		view.Quotas = append(view.Quotas, quotaUseView{
			Quota: u.Quota.String(), Most: u.Most, Used: u.Most / float64(u.Quota.Limit),
			From: exactUnlessZero(u.From), To: exactUnlessZero(u.To),
		})
	}
	for _, b := range v.Violations {
		view.Violations = append(view.Violations, violationView{
			What: b.What, From: exactStamp(b.From), To: exactStamp(b.To), Cost: b.Cost, Allowed: b.Allowed,
			Early: b.Early, Jobs: b.Jobs, Policy: viewOf(b.Policy, ""),
		})
	}
	return view
}

// forcedOf lists the departures that were forced.
func forcedOf(h throttle.History) []forcedView {
	forced := []forcedView{}
	for _, d := range h.Departures {
		if d.Forced {
			forced = append(forced, forcedView{exactStamp(d.At), d.ID, d.Key, d.Cost})
		}
	}
	return forced
}

func exactUnlessZero(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return exactStamp(t)
}
