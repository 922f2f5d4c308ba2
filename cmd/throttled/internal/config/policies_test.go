package config

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestWholePolicy(t *testing.T) {
	c, err := Read("f", []byte(`
policies:
  - {key: acme, rate: 50/s}
  - key: "acme-*"
    rate: 20/s
    burst: 5
    max_in_flight: 7
    quotas:
      - {limit: 1000, per: 1h}
      - {limit: 1000, per: 1h, window: fixed}
      - {limit: 9000, per: 24h, window: fixed, zone: Europe/Berlin}
    parent: acme
    weight: 3
    minimum: 30/m
    hours:
      zone: America/New_York
      open: [mon-fri 09:00-18:00, "22:00-02:00"]
    ramp: {from: 2.5%, over: 5m}
    ordered: true
    ageing: 30s
    job_ttl: 48h
    max_waiting: 1000
    overflow: drop_oldest
    history: 5000
    keep_done: 24h
`))
	require.NoError(t, err)
	working := []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}
	require.Equal(t, []throttle.Policy{
		{Key: "acme", Limit: throttle.Limit{Rate: 50, Period: time.Second, Burst: 1}, MaxInFlight: 100},
		{
			Key: "acme-*", Limit: throttle.Limit{Rate: 20, Period: time.Second, Burst: 5}, MaxInFlight: 7,
			Quotas: []throttle.Quota{
				{Limit: 1000, Per: time.Hour},
				{Limit: 1000, Per: time.Hour, Window: throttle.Fixed},
				{Limit: 9000, Per: 24 * time.Hour, Window: throttle.Fixed, Zone: "Europe/Berlin"},
			},
			Parent: "acme", Weight: 3, Minimum: throttle.Rate{Cost: 30, Per: time.Minute},
			Hours: &throttle.Hours{Zone: "America/New_York", Open: []throttle.Opening{
				{Days: working, From: 9 * time.Hour, To: 18 * time.Hour},
				{From: 22 * time.Hour, To: 2 * time.Hour},
			}},
			Ramp:    &throttle.Ramp{From: 0.025, Over: 5 * time.Minute},
			Ordered: true, Ageing: 30 * time.Second, JobTTL: 48 * time.Hour, MaxWaiting: 1000, Overflow: throttle.DropOldest,
			History: 5000, KeepDone: 24 * time.Hour,
		},
	}, c.Policies)
	require.Equal(t, "f:12:13", c.Origin("policies[1].parent"))
	require.Equal(t, "f:11:17", c.Origin("policies[1].quotas[2].limit"))
	require.Equal(t, "f:17:35", c.Origin("policies[1].hours.open[1]"))
	require.Equal(t, "f:19:14", c.Origin("policies[1].ordered"))
	require.Equal(t, "f:23:15", c.Origin("policies[1].overflow"))
}

// What is left out or empty is as if it were not there.
func TestPolicyFieldsLeftOpen(t *testing.T) {
	c, err := Read("f", []byte("policies: [{key: a, rate: 1/s, quotas: , parent: , weight: , minimum: , hours: , ramp: , "+
		"ordered: , ageing: , job_ttl: , max_waiting: , overflow: , history: , keep_done: }, {key: b, rate: 1/s, quotas: [], ordered: false}]"))
	require.NoError(t, err)
	plain := throttle.Policy{Key: "a", Limit: throttle.Limit{Rate: 1, Period: time.Second, Burst: 1}, MaxInFlight: 100}
	require.Equal(t, plain, c.Policies[0])
	plain.Key = "b"
	require.Equal(t, plain, c.Policies[1])
}

func TestPolicyProblems(t *testing.T) {
	const (
		wantPer     = "want a duration with its unit, such as 10s or 1m30s, from 1s to 8784h, in whole milliseconds"
		wantZone    = "want an IANA time zone such as Europe/Berlin, or UTC"
		wantOpening = "want HH:MM-HH:MM, or days before it as in mon-fri 09:00-18:00 or sat,sun 22:00-02:00"
		wantOver    = "want a duration with its unit, such as 10s or 1m30s, from 1s to 24h, in whole milliseconds"
		wantFrom    = "want a percentage of the rate above 0% and below 100%, such as 10%"
		wantAgeing  = "want a duration with its unit, such as 10s or 1m30s, from 1ms to 24h, in whole milliseconds"
		wantTTL     = "want a duration with its unit, such as 10s or 1m30s, from 1ms to 87600h, in whole milliseconds"
		wantKeep    = "want a duration with its unit, such as 10s or 1m30s, from 1s to 720h, in whole milliseconds"
		wantParent  = "want text of 1 to 512 bytes: the exact key of another policy, without *"
	)
	one := func(more string) string { return "policies:\n- key: a\n  rate: 1/s\n  " + more + "\n" }
	under := func(more string) string {
		return "policies:\n- {key: up, rate: 5/s}\n- key: a\n  rate: 1/s\n  " + more + "\n"
	}
	for _, c := range []struct {
		name, file string
		want       []string
	}{
		{"quotas a mapping", one("quotas: {limit: 1}"), []string{"f:4:11: policies[0].quotas {…} is not allowed: want a list of quotas"}},
		{"quota a text", one("quotas: [1000/h]"), []string{`f:4:12: policies[0].quotas[0] "1000/h" is not allowed: want a mapping of limit, per, window, zone`}},
		{"quota empty", one("quotas: [null]"), []string{`f:4:12: policies[0].quotas[0] null is not allowed: want a mapping of limit, per, window, zone`}},
		{"quota of nothing", one("quotas: [{}]"), []string{
			"f:4:12: policies[0].quotas[0].limit is missing: want a whole number from 1 to 1000000000",
			"f:4:12: policies[0].quotas[0].per is missing: " + wantPer,
		}},
		{"quota with an unknown field", one("quotas: [{limit: 1, per: 1h, burst: 2}]"), []string{"f:4:32: policies[0].quotas[0].burst is not a known field: want limit, per, window, zone"}},
		{"limit 0", one("quotas: [{limit: 0, per: 1h}]"), []string{"f:4:20: policies[0].quotas[0].limit 0 is not allowed: want a whole number from 1 to 1000000000"}},
		{"per too short", one("quotas: [{limit: 1, per: 999ms}]"), []string{`f:4:28: policies[0].quotas[0].per "999ms" is not allowed: ` + wantPer}},
		{"per not whole", one("quotas: [{limit: 1, per: 1000.5ms}]"), []string{`f:4:28: policies[0].quotas[0].per "1000.5ms" is not allowed: ` + wantPer}},
		{"window unknown", one("quotas: [{limit: 1, per: 1h, window: rolling}]"), []string{`f:4:40: policies[0].quotas[0].window "rolling" is not allowed: want sliding or fixed`}},
		{"zone unknown", one("quotas: [{limit: 1, per: 24h, window: fixed, zone: Mars/Base}]"), []string{`f:4:54: policies[0].quotas[0].zone "Mars/Base" is not allowed: ` + wantZone}},
		{"zone of the machine", one("quotas: [{limit: 1, per: 24h, window: fixed, zone: Local}]"), []string{`f:4:54: policies[0].quotas[0].zone "Local" is not allowed: ` + wantZone}},
		{"zone of a sliding window", one("quotas: [{limit: 1, per: 24h, zone: Europe/Berlin}]"), []string{
			`f:4:39: policies[0].quotas[0].zone "Europe/Berlin" is not allowed: want none, unless the window is fixed and the period 24h: the calendar day of a zone`,
		}},
		{"same window twice", one("quotas:\n  - {limit: 1, per: 1h}\n  - {limit: 2, per: 60m, window: sliding}"), []string{
			`f:6:5: policies[0].quotas[1] "2/h sliding" is not allowed: want one quota for each window, period and zone`,
		}},
		{"too many quotas", one("quotas: [" + strings.Repeat("{limit: 1, per: 1s}, ", 9) + "]"), []string{"f:4:11: policies[0].quotas 9 is not allowed: want at most 8"}},
		{"parent empty", under("parent: ''"), []string{`f:5:11: policies[1].parent "" is not allowed: ` + wantParent}},
		{"parent a pattern", under("parent: 'u*'"), []string{`f:5:11: policies[1].parent "u*" is not allowed: want an exact key, without *`}},
		{"parent itself", one("parent: a"), []string{`f:4:11: policies[0].parent "a" is not allowed: want another key than the policy's own`}},
		{"weight without parent", one("weight: 2"), []string{"f:4:11: policies[0].weight 2 is not allowed: want none without a parent"}},
		{"weight 0", under("parent: up\n  weight: 0"), []string{"f:6:11: policies[1].weight 0 is not allowed: want a whole number from 1 to 1000"}},
		{"minimum without parent", one("minimum: 1/s"), []string{`f:4:12: policies[0].minimum "1/s" is not allowed: want none without a parent`}},
		{"minimum no rate", under("parent: up\n  minimum: 5"), []string{"f:6:12: policies[1].minimum 5 is not allowed: " + wantRate}},
		{"minimum above the rate", under("parent: up\n  minimum: 2/s"), []string{`f:6:12: policies[1].minimum "2/s" is not allowed: want at most the policy's own rate of 1/s`}},
		{"hours a list", one("hours: ['09:00-18:00']"), []string{"f:4:10: policies[0].hours […] is not allowed: want a mapping of zone, open"}},
		{"hours without openings", one("hours: {zone: UTC}"), []string{`f:4:10: policies[0].hours.open is missing: want a list of openings, such as ["mon-fri 09:00-18:00"]`}},
		{"never open", one("hours: {open: []}"), []string{"f:4:17: policies[0].hours.open 0 is not allowed: want 1 to 32 openings"}},
		{"open a text", one("hours: {open: 09:00-18:00}"), []string{`f:4:17: policies[0].hours.open "09:00-18:00" is not allowed: want a list of openings`}},
		{"open at no time", one("hours: {open: [mon-fri, '25:00-26:00']}"), []string{
			`f:4:18: policies[0].hours.open[0] "mon-fri" is not allowed: ` + wantOpening,
			`f:4:27: policies[0].hours.open[1] "25:00-26:00" is not allowed: ` + wantOpening,
		}},
		{"hours of no zone", one("hours: {zone: europe/berlin, open: ['09:00-18:00']}"), []string{`f:4:17: policies[0].hours.zone "europe/berlin" is not allowed: ` + wantZone}},
		{"ramp empty", one("ramp: {}"), []string{
			"f:4:9: policies[0].ramp.from is missing: " + wantFrom, "f:4:9: policies[0].ramp.over is missing: " + wantOver,
		}},
		{"ramp from all", one("ramp: {from: 100%, over: 1m}"), []string{`f:4:16: policies[0].ramp.from "100%" is not allowed: ` + wantFrom}},
		{"ramp from nothing", one("ramp: {from: 0%, over: 1m}"), []string{`f:4:16: policies[0].ramp.from "0%" is not allowed: ` + wantFrom}},
		{"ramp from a fraction", one("ramp: {from: 0.1, over: 1m}"), []string{"f:4:16: policies[0].ramp.from 0.1 is not allowed: " + wantFrom}},
		{"ramp from NaN", one("ramp: {from: NaN%, over: 1m}"), []string{`f:4:16: policies[0].ramp.from "NaN%" is not allowed: ` + wantFrom}},
		{"ramp too long", one("ramp: {from: 10%, over: 25h}"), []string{`f:4:27: policies[0].ramp.over "25h" is not allowed: ` + wantOver}},
		{"ramp twice", one("ramp: {from: 10%, over: 1m}\n  ramp: {from: 20%, over: 1m}"), []string{"f:5:3: policies[0].ramp is given twice: want it once, as on line 4"}},
		{"ordered a text", one("ordered: 'true'"), []string{`f:4:12: policies[0].ordered "true" is not allowed: want true or false`}},
		{"ordered yes", one("ordered: yes"), []string{`f:4:12: policies[0].ordered "yes" is not allowed: want true or false`}},
		{"ordered loud", one("ordered: TRUE"), []string{`f:4:12: policies[0].ordered TRUE is not allowed: want true or false`}},
		{"ordered 1", one("ordered: 1"), []string{`f:4:12: policies[0].ordered 1 is not allowed: want true or false`}},
		{"burst true", one("burst: true"), []string{"f:4:10: policies[0].burst true is not allowed: " + wantBurst}},
		{"ageing without unit", one("ageing: 30"), []string{"f:4:11: policies[0].ageing 30 is not allowed: " + wantAgeing}},
		{"ageing 0", one("ageing: 0s"), []string{`f:4:11: policies[0].ageing "0s" is not allowed: ` + wantAgeing}},
		{"ageing too long", one("ageing: 25h"), []string{`f:4:11: policies[0].ageing "25h" is not allowed: ` + wantAgeing}},
		{"ageing not whole", one("ageing: 1.5ms"), []string{`f:4:11: policies[0].ageing "1.5ms" is not allowed: ` + wantAgeing}},
		{"job ttl too short", one("job_ttl: 999us"), []string{`f:4:12: policies[0].job_ttl "999us" is not allowed: ` + wantTTL}},
		{"job ttl too long", one("job_ttl: 87600h1ms"), []string{`f:4:12: policies[0].job_ttl "87600h1ms" is not allowed: ` + wantTTL}},
		{"max waiting 0", one("max_waiting: 0"), []string{"f:4:16: policies[0].max_waiting 0 is not allowed: want a whole number from 1 to 1000000000"}},
		{"overflow unknown", one("max_waiting: 1\n  overflow: drop"), []string{`f:5:13: policies[0].overflow "drop" is not allowed: want refuse, drop_oldest or drop_newest`}},
		{"overflow without max waiting", one("overflow: refuse"), []string{`f:4:13: policies[0].overflow "refuse" is not allowed: want none without max_waiting`}},
		{"history negative", one("history: -1"), []string{"f:4:12: policies[0].history -1 is not allowed: want a whole number from 1 to 1000000"}},
		{"keep done too short", one("keep_done: 999ms"), []string{`f:4:14: policies[0].keep_done "999ms" is not allowed: ` + wantKeep}},
		{"keep done too long", one("keep_done: 721h"), []string{`f:4:14: policies[0].keep_done "721h" is not allowed: ` + wantKeep}},

		{"parent missing", one("parent: up"), []string{`f:4:11: policies[0].parent "up" is not allowed: want a key that has a policy of its own`}},
		{
			"parent only matched by a pattern", "policies:\n- {key: 'u*', rate: 1/s}\n- {key: a, rate: 1/s, parent: up}\n",
			[]string{`f:3:31: policies[1].parent "up" is not allowed: want a key that has a policy of its own`},
		},
		{
			"loop", "policies:\n- {key: a, rate: 1/s, parent: b}\n- {key: b, rate: 1/s, parent: a}\n",
			[]string{`f:2:31: policies[0].parent "b" is not allowed: want no loop: the parents of "b" lead back to "a"`},
		},
		{
			"too many levels", "policies:\n- {key: a, rate: 1/s}\n- {key: b, rate: 1/s, parent: a}\n- {key: c, rate: 1/s, parent: b}\n- {key: d, rate: 1/s, parent: c}\n- {key: e, rate: 1/s, parent: d}\n",
			[]string{`f:6:31: policies[4].parent "d" is not allowed: want at most 4 levels, and this makes 5`},
		},
		{
			"minimum above the parent's rate", "policies:\n- {key: up, rate: 1/m}\n- {key: a, rate: 1/s, parent: up, minimum: 1/s}\n",
			[]string{`f:3:44: policies[1].minimum "1/s" is not allowed: want at most the rate of parent "up", 1/m`},
		},
		{
			"minimums above the parent's rate together", "policies:\n- {key: up, rate: 5/s}\n- {key: a, rate: 9/s, parent: up, minimum: 3/s}\n- {key: b, rate: 9/s, parent: up, minimum: 3/s}\n",
			[]string{`f:4:44: policies[2].minimum "3/s" is not allowed: want no more, with the minimums of the other keys, than the rate of parent "up", 5/s`},
		},
		{
			"contradictions wait for what is wrong alone", "policies:\n- {key: a, rate: 1/s, parent: b}\n- {key: b, rate: x}\n",
			[]string{`f:3:18: policies[1].rate "x" is not allowed: ` + wantRate},
		},
		{
			"every policy's own contradictions", "policies:\n- {key: a, rate: 1/s, weight: 2}\n- {key: b, rate: 1/s, weight: 3}\n",
			[]string{"f:2:31: policies[0].weight 2 is not allowed: want none without a parent", "f:3:31: policies[1].weight 3 is not allowed: want none without a parent"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read("f", []byte(c.file))
			require.EqualError(t, err, strings.Join(c.want, "\n"))
		})
	}
}

func TestLocate(t *testing.T) {
	c, err := Read("f", []byte("policies:\n- {key: a, rate: 1/s, quotas: [{limit: 1, per: 1s}]}\n"))
	require.NoError(t, err)
	for field, want := range map[string]string{
		"policies[0].rate":                 "f:2:18",
		"policies[0].quotas[0].per":        "f:2:48",
		"policies[0].parent":               "f:2:3",
		`the live policy of "b.c": parent`: "",
	} {
		require.Equal(t, want, c.Locate(&throttle.InvalidError{Field: field}), field)
	}
	require.Empty(t, c.Locate(throttle.ErrNoJob))
}

func TestPercent(t *testing.T) {
	for text, want := range map[string]float64{"10%": 0.1, "2.5%": 0.025, "7%": 0.07, "99.9%": 0.999, "0.001%": 0.00001, "0.0000001%": 1e-9} {
		got, ok := ParsePercent(text)
		require.True(t, ok, text)
		require.InDelta(t, want, got, 1e-12)
		require.Equal(t, text, FormatPercent(got))
	}
	for _, text := range []string{"", "%", "10", "0.1", "0%", "100%", "-1%", "+1%", "1e1%", "0x1%", "1..2%", "10 %", "inf%"} {
		_, ok := ParsePercent(text)
		require.False(t, ok, text)
	}
}

func TestChanged(t *testing.T) {
	require.Empty(t, Changed(Default(), Default()))
	other := map[string]string{
		"redis": "redis://h", "shards": "3", "worker.concurrency": "7", "worker.shutdown_timeout": "1s", "worker.timeout": "1s",
		"dead_letters.max": "1", "dead_letters.age": "1h", "worker.lease": "2s", "worker.retry.base": "2s", "worker.retry.cap": "1h", "worker.retry.max_attempts": "2", "worker.retry.delays": "1s,5m", "http.listen": ":1",
		"http.allow_networks": "10.0.0.0/8,::1", "http.proxy": "environment", "http.failure_callback": "https://h/",
	}
	d := Default()
	for path := range d.fields() {
		c := Default()
		if path == maxWaitingPath {
			require.NoError(t, c.Set(path, "0", "test"))
			require.Empty(t, Changed(Default(), c), "a running process takes it on")
			continue
		}
		require.Contains(t, other, path)
		require.NoError(t, c.Set(path, other[path], "test"))
		require.Equal(t, []string{path}, Changed(Default(), c))
	}
	a, err := Read("f", []byte("worker: {pools: {x: 1}, lease: 3s}\npolicies: []\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"worker.lease", "worker.pools"}, Changed(Default(), a))
}
