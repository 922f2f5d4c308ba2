package throttle_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func validJob() throttle.Job {
	return throttle.Job{Key: "k", ID: "1", Type: "t", Pool: "default", Cost: 1}
}

// bringing makes a job bring the default policy with a change.
func bringing(change func(*throttle.Policy)) func(*throttle.Job) {
	return func(j *throttle.Job) {
		p := throttle.DefaultPolicy
		change(&p)
		j.Policy = &p
	}
}

func TestJobBounds(t *testing.T) {
	const bound = 1000
	require.NoError(t, validJob().Validate(bound))
	require.NoError(t, throttle.Job{Key: "k", Type: "t"}.Validate(bound), "the rest may be left out")
	full := validJob()
	full.Payload = make([]byte, bound)
	full.Headers = map[string]string{"h": strings.Repeat("v", throttle.MaxHeaderBytes-1)}
	full.Cost = throttle.MaxCost
	full.ID = strings.Repeat("i", throttle.MaxTokenBytes)
	require.NoError(t, full.Validate(bound))
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	lasting := validJob()
	lasting.NotBefore, lasting.Deadline = noon, noon
	lasting.TTL, lasting.Dedupe = time.Minute+1, &throttle.Dedupe{Debounce: time.Minute}
	require.NoError(t, lasting.Validate(bound), "it may leave at that instant")

	minimum := throttle.Rate{Cost: 1, Per: time.Second}
	for field, spoil := range map[string][]func(*throttle.Job){
		"key":     {func(j *throttle.Job) { j.Key = "" }, func(j *throttle.Job) { j.Key = "\xff" }},
		"id":      {func(j *throttle.Job) { j.ID = "a b" }, func(j *throttle.Job) { j.ID = "a\nb" }, func(j *throttle.Job) { j.ID = strings.Repeat("i", throttle.MaxTokenBytes+1) }},
		"type":    {func(j *throttle.Job) { j.Type = "" }, func(j *throttle.Job) { j.Type = "ä" }},
		"pool":    {func(j *throttle.Job) { j.Pool = "a b" }},
		"cost":    {func(j *throttle.Job) { j.Cost = -1 }, func(j *throttle.Job) { j.Cost = -1_000_000_000 }, func(j *throttle.Job) { j.Cost = math.MaxInt64 }},
		"payload": {func(j *throttle.Job) { j.Payload = make([]byte, bound+1) }},
		"headers": {
			func(j *throttle.Job) {
				j.Headers = map[string]string{"h": strings.Repeat("v", throttle.MaxHeaderBytes)}
			},
			func(j *throttle.Job) { j.Headers = map[string]string{"h": "\xff"} },
		},
		"timeout":      {func(j *throttle.Job) { j.Timeout = -1 }},
		"max_attempts": {func(j *throttle.Job) { j.MaxAttempts = -1 }},
		"not_before": {
			func(j *throttle.Job) { j.NotBefore = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC) },
		},
		"deadline": {
			func(j *throttle.Job) { j.Deadline = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) },
			func(j *throttle.Job) { j.NotBefore, j.Deadline = noon, noon.Add(-time.Second) },
		},
		"ttl": {
			func(j *throttle.Job) { j.TTL = -1 },
			func(j *throttle.Job) { j.TTL, j.Dedupe = time.Minute, &throttle.Dedupe{Debounce: time.Minute} },
		},
		"policy.rate":            {func(j *throttle.Job) { j.Policy = &throttle.Policy{Key: "k"} }},
		"policy.parent":          {bringing(func(p *throttle.Policy) { p.Parent, p.Weight, p.Minimum = "acme", 2, minimum })},
		"policy.weight":          {bringing(func(p *throttle.Policy) { p.Weight = 1 })},
		"policy.minimum":         {bringing(func(p *throttle.Policy) { p.Minimum = minimum })},
		"policy.quotas[0].limit": {bringing(func(p *throttle.Policy) { p.Quotas = []throttle.Quota{{Per: time.Hour}} })},
		"policy.hours.zone": {bringing(func(p *throttle.Policy) {
			p.Hours = &throttle.Hours{Zone: "Nowhere", Open: []throttle.Opening{{To: time.Hour}}}
		})},
	} {
		for i, f := range spoil {
			j := validJob()
			f(&j)
			err := j.Validate(bound)
			require.ErrorIs(t, err, throttle.ErrInvalid, "%s %d", field, i)
			var e *throttle.InvalidError
			require.ErrorAs(t, err, &e)
			require.Equal(t, field, e.Field)
			require.NotEmpty(t, e.Allowed)
		}
	}
}

// What is compared is named, on both sides.
func TestJobsThatAlwaysExpireAreRefused(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	j := validJob()
	j.NotBefore, j.Deadline = noon, noon.Add(-time.Hour)
	require.EqualError(t, j.Validate(0),
		`deadline "2026-12-01T11:00:00Z" is not allowed: want none before not_before, 2026-12-01T12:00:00Z`)
	j = validJob()
	j.TTL, j.Dedupe = time.Minute, &throttle.Dedupe{Debounce: time.Hour}
	require.EqualError(t, j.Validate(0), "ttl 1m0s is not allowed: want more than dedupe.debounce, 1h0m0s: both count from the enqueue")
}

// Only to enqueue is it news that every job has a key.
func TestAJobNeedsAKey(t *testing.T) {
	require.ErrorContains(t, throttle.Job{Type: "t"}.Validate(0), "a job without a limit of its own still needs a key")
	require.EqualError(t, throttle.ValidateKey(""), `key "" is not allowed: want 1 to 512 bytes`)
}

func TestKeys(t *testing.T) {
	for _, key := range []string{
		"a", "{", "}{", "a{b}c", "a b", "a:b", "é", "🚰", "\x00", "\r\n\t", "<img src=x>", strings.Repeat("k", 512), strings.Repeat("é", 256),
	} {
		require.NoError(t, throttle.ValidateKey(key), "%q", key)
	}
	for key, shown := range map[string]string{
		"": `key ""`, strings.Repeat("k", 513): "key 513", strings.Repeat("k", 1<<20): "key 1048576", "\xff": `key "\xff"`, "a\xc3": `key "a\xc3"`,
	} {
		err := throttle.ValidateKey(key)
		require.ErrorIs(t, err, throttle.ErrInvalid)
		require.Contains(t, err.Error(), shown)
	}
}

// The key of a policy that a job brings does not count, so a job whose key could not
// name a policy may bring one.
func TestJobsBringPoliciesUnderAnyKey(t *testing.T) {
	for _, key := range []string{"k", "*", "a*b", "a**b"} {
		j := validJob()
		j.Key = key
		bringing(func(p *throttle.Policy) {
			p.Key = "**"
			p.Quotas = []throttle.Quota{{Limit: 10, Per: 24 * time.Hour, Window: throttle.Fixed}}
			p.Hours = &throttle.Hours{Open: []throttle.Opening{{To: time.Hour}}}
			p.Ramp = &throttle.Ramp{From: 0.5, Over: time.Minute}
		})(&j)
		require.NoError(t, j.Validate(0), key)
	}
}

// The scripts know the zones of stored policies alone.
func TestJobsBringNoZones(t *testing.T) {
	for field, change := range map[string]func(p *throttle.Policy){
		"policy.quotas[0].zone": func(p *throttle.Policy) {
			p.Quotas = []throttle.Quota{{Limit: 10, Per: 24 * time.Hour, Window: throttle.Fixed, Zone: "Europe/Berlin"}}
		},
		"policy.hours.zone": func(p *throttle.Policy) {
			p.Hours = &throttle.Hours{Zone: "Europe/Berlin", Open: []throttle.Opening{{To: time.Hour}}}
		},
	} {
		j := validJob()
		bringing(change)(&j)
		require.ErrorContains(t, j.Validate(0), field+` "Europe/Berlin" is not allowed: want UTC`)
	}
}

func TestNewJobIDsAreValidAndSort(t *testing.T) {
	last := ""
	for range 100 {
		j := validJob()
		j.ID = throttle.NewJobID()
		require.NoError(t, j.Validate(0))
		require.Greater(t, j.ID, last)
		last = j.ID
	}
}
