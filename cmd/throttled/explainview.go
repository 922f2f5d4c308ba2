package main

import (
	"time"

	"github.com/weirq/weir/throttle"
)

// An explanationView is an explanation as --json prints it.
type explanationView struct {
	Key        string          `json:"key"`
	Waiting    int64           `json:"waiting"`
	Delayed    int64           `json:"delayed"`
	InFlight   int64           `json:"in_flight"`
	Job        string          `json:"job,omitempty"` // that this is about
	JobState   string          `json:"job_state,omitempty"`
	Position   int64           `json:"position"` // in the line; 0 outside it
	Cause      string          `json:"cause"`
	Holder     string          `json:"holder"`
	Until      string          `json:"until,omitempty"`
	Paused     bool            `json:"paused"`
	Draining   bool            `json:"draining"`
	CoolUntil  string          `json:"cool_until,omitempty"`
	Candidates []candidateView `json:"candidates"`
	Chain      []linkView      `json:"chain"`
}

type candidateView struct {
	InForce bool `json:"in_force"`
	policyView
}

type linkView struct {
	Key    string     `json:"key"`
	Level  float64    `json:"level"`
	Policy policyView `json:"policy"`
}

func explanationOf(e throttle.Explanation) explanationView {
	v := explanationView{
		Key: e.Key, Waiting: e.Waiting, Delayed: e.Delayed, InFlight: e.InFlight,
		Job: e.Job, JobState: e.JobState, Position: e.Position,
		Cause: string(e.Cause), Holder: e.Holder, Until: stampUnlessZero(e.Until),
		Paused: e.Paused, Draining: e.Draining, CoolUntil: stampUnlessZero(e.CoolUntil),
	}
	if e.Cause == throttle.ByNothing {
		v.Cause = "none"
	}
	for i, c := range e.Candidates {
		v.Candidates = append(v.Candidates, candidateView{i == 0, viewOf(c.Policy, c.Source)})
	}
	for _, l := range e.Chain {
		v.Chain = append(v.Chain, linkView{l.Key, l.Level, viewOf(l.Policy, "")})
	}
	return v
}

func stampUnlessZero(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}
