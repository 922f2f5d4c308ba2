package throttle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirq/weir/throttle/internal/script"
)

// A Source is where a policy comes from. For one name a live policy wins over that
// of the config file. Between names, the exact one wins over the policy that a job
// brought along, which wins over the longest pattern that matches, of two as long the
// first in byte order, and over [AnyKey].
type Source string

// Sources of policies.
const (
	Live    Source = "live"     // SetPolicy
	File    Source = "file"     // SetPolicies
	Brought Source = "job"      // Job.Policy
	BuiltIn Source = "built in" // DefaultPolicy
)

// A StoredPolicy is a policy with its source, Live or File.
type StoredPolicy struct {
	Policy
	Source Source
}

// SetPolicies replaces the policies of the config file; live ones stay. Schedulers
// look at every bucket again, so jobs that wait feel the change, within a second or
// so for thousands of keys. Nothing is written if one policy is invalid, two are for
// one name, or parents are wanting or go round in a circle, the live policies
// included: then the stored ones stay in force.
func (q *Queue) SetPolicies(ctx context.Context, policies []Policy) error {
	policies = slices.Clone(policies)
	for i, p := range policies {
		policies[i] = p.WithDefaults()
	}
	if err := ValidatePolicies(policies); err != nil {
		return err
	}
	stored, err := q.Policies(ctx)
	if err != nil {
		return err
	}
	live, file := bySource(stored)
	if err := validateTogether(policies, live); err != nil {
		return err
	}
	if err := q.storeFile(ctx, policies, stored); err != nil {
		return fmt.Errorf("set policies: %w", err)
	}
	if what := difference(file, policies); what != "" {
		note := q.store.scripts.Note(0, q.who, "load", "", what)
		if err := q.store.run(ctx, note); err != nil {
			return fmt.Errorf("set policies: %w", err)
		}
	}
	return nil
}

func (q *Queue) storeFile(ctx context.Context, policies []Policy, stored []StoredPolicy) error {
	families, err := q.prepare(ctx, policies, stored)
	if err != nil {
		return err
	}
	calls := make([]*script.Call, q.store.shards)
	for shard := range calls {
		var rules []script.Rule
		for _, p := range policies {
			if q.store.keeps(shard, p.Key, families) {
				rules = append(rules, script.Rule{Name: p.Key, Policy: p.text()})
			}
		}
		calls[shard] = q.store.scripts.Policies(shard, q.store.familyShards(families), rules)
	}
	return q.store.run(ctx, calls...)
}

// prepare stores what policies need before they are stored themselves, and tells
// whether there are families.
func (q *Queue) prepare(ctx context.Context, policies []Policy, stored []StoredPolicy) (families bool, err error) {
	if err := q.setZones(ctx, policies...); err != nil {
		return false, err
	}
	before, err := q.store.families(ctx)
	if err != nil {
		return false, err
	}
	hasParent := func(p Policy) bool { return p.Parent != "" }
	families = before || slices.ContainsFunc(policies, hasParent) ||
		slices.ContainsFunc(stored, func(p StoredPolicy) bool { return hasParent(p.Policy) })
	if families && !before {
		err = q.spreadHolds(ctx)
	}
	return families, err
}

// difference names what a load of policies changes, empty for nothing.
func difference(before []StoredPolicy, after []Policy) string {
	old := make(map[string]string)
	for _, p := range before {
		old[p.Key] = p.text()
	}
	var parts []string
	for _, p := range after {
		switch text, had := old[p.Key]; {
		case !had:
			parts = append(parts, "+"+p.Key)
		case text != p.text():
			parts = append(parts, "~"+p.Key)
		}
		delete(old, p.Key)
	}
	for key := range old {
		parts = append(parts, "-"+key)
	}
	slices.Sort(parts)
	const most = 100 // names: for more, the numbers have to do
	if len(parts) > most {
		parts = append(parts[:most], fmt.Sprintf("and %d more", len(parts)-most))
	}
	return strings.Join(parts, " ")
}

// SetPolicy sets the live policy of an exact key or a pattern. The jobs that wait feel
// it: those of an exact key at once, those of a pattern within a second or so for
// thousands of keys. It stays until RemovePolicy, whatever the config file says.
// Nothing is written if it is invalid, also together with the stored ones.
func (q *Queue) SetPolicy(ctx context.Context, p Policy) error {
	p = p.WithDefaults()
	if err := p.Validate(); err != nil {
		return err
	}
	stored, err := q.Policies(ctx)
	if err != nil {
		return err
	}
	if err := validateTogether(nil, append([]StoredPolicy{{p, Live}}, replaced(stored, p.Key)...)); err != nil {
		return because(fmt.Sprintf("with this policy of %q", p.Key), fmt.Sprintf("the live policy of %q: ", p.Key), err)
	}
	families, err := q.prepare(ctx, []Policy{p}, stored)
	if err == nil {
		err = q.override(ctx, p.Key, p.text(), families)
	}
	if err != nil {
		return fmt.Errorf("set policy of %q: %w", p.Key, err)
	}
	return nil
}

// RemovePolicy removes the live policy of a name; that of the config file, or the
// next source, is in force again. It is no error if there is none.
func (q *Queue) RemovePolicy(ctx context.Context, name string) error {
	if err := ValidatePolicyName(name); err != nil {
		return err
	}
	stored, err := q.Policies(ctx)
	if err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(stored), func(p StoredPolicy) bool { return p.Key == name && p.Source == Live })
	if err := validateTogether(nil, effective(rest)); err != nil {
		return because(fmt.Sprintf("without the live policy of %q", name), "", err)
	}
	families, err := q.prepare(ctx, nil, stored)
	if err == nil {
		err = q.override(ctx, name, "", families)
	}
	if err != nil {
		return fmt.Errorf("remove policy of %q: %w", name, err)
	}
	return nil
}

// Policies lists what is stored, by name, live before file.
func (q *Queue) Policies(ctx context.Context) ([]StoredPolicy, error) {
	found := make(map[string]StoredPolicy)
	for shard := range q.store.shards {
		for source, name := range map[Source]string{File: script.FileKey(shard), Live: script.LiveKey(shard)} {
			if err := q.readPolicies(ctx, name, source, found); err != nil {
				return nil, fmt.Errorf("list policies: %w", err)
			}
		}
	}
	list := make([]StoredPolicy, 0, len(found))
	for _, p := range found {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b StoredPolicy) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		return strings.Compare(string(b.Source), string(a.Source))
	})
	return list, nil
}

func (q *Queue) readPolicies(ctx context.Context, name string, source Source, into map[string]StoredPolicy) error {
	return q.store.scan(ctx, name, func(key, text string) error {
		// A damaged one counts as absent, as it does for the scripts.
		if p, err := policyFromText(key, text); err == nil {
			into[string(source)+" "+p.Key] = StoredPolicy{p, source}
		}
		return nil
	})
}

// keeps tells whether a shard keeps the policy of a name. Once there are families all
// are kept by all, so that each shard can tell where a key belongs.
func (s *store) keeps(shard int, name string, families bool) bool {
	return families || isPattern(name) || shard == s.natural(name)
}

func (s *store) familyShards(families bool) int {
	if families {
		return s.shards
	}
	return 0
}

// override changes the live policy of a name wherever it is kept. It is written to the
// trail by the shard that the name hashes to.
func (q *Queue) override(ctx context.Context, name, text string, families bool) error {
	var calls []*script.Call
	for shard := range q.store.shards {
		if !q.store.keeps(shard, name, families) {
			continue
		}
		who := ""
		if shard == q.store.natural(name) {
			who = q.who
		}
		calls = append(calls, q.store.scripts.Override(shard, q.store.familyShards(families), who, script.Rule{Name: name, Policy: text}))
	}
	return q.store.run(ctx, calls...)
}

// setZones stores the offsets of the zones that policies name, before the policies.
func (q *Queue) setZones(ctx context.Context, policies ...Policy) error {
	zones := make(map[string]bool)
	for _, p := range policies {
		for _, z := range p.zones() {
			zones[z] = true
		}
	}
	for name := range zones {
		zone, err := zoneOffsets(name)
		if err != nil {
			return err
		}
		offsets := make([]script.Offset, len(zone))
		for i, o := range zone {
			offsets[i] = script.Offset(o)
		}
		var calls []*script.Call
		for shard := range q.store.shards {
			calls = append(calls, q.store.scripts.Zone(shard, name, offsets))
		}
		if err := q.store.run(ctx, calls...); err != nil {
			return err
		}
	}
	return nil
}

func bySource(stored []StoredPolicy) (live, file []StoredPolicy) {
	for _, p := range stored {
		if p.Source == Live {
			live = append(live, p)
		} else {
			file = append(file, p)
		}
	}
	return live, file
}

// because tells what change brings about an error that is about another policy.
func because(change, own string, err error) error {
	var e *InvalidError
	if !errors.As(err, &e) || own != "" && strings.HasPrefix(e.Field, own) {
		return err
	}
	return &InvalidError{Field: change + ", " + e.Field, Value: e.Value, Allowed: e.Allowed}
}

// effective drops the policies of the file that live ones of the same name replace.
func effective(stored []StoredPolicy) []StoredPolicy {
	live := make(map[string]bool)
	for _, p := range stored {
		live[p.Key] = live[p.Key] || p.Source == Live
	}
	return slices.DeleteFunc(slices.Clone(stored), func(p StoredPolicy) bool { return p.Source == File && live[p.Key] })
}

// replaced drops all policies of a name and those that are not in force.
func replaced(stored []StoredPolicy, name string) []StoredPolicy {
	return slices.DeleteFunc(effective(stored), func(p StoredPolicy) bool { return p.Key == name })
}

// validateTogether checks policies of a file as they will be in force with others.
// An error about one of the file says policies[i], others say what they are of.
func validateTogether(file []Policy, others []StoredPolicy) error {
	var together []Policy
	var places []string
	live := make(map[string]bool)
	for _, p := range others {
		live[p.Key] = true
		together = append(together, p.Policy)
		places = append(places, fmt.Sprintf("the %s policy of %q: ", p.Source, p.Key))
	}
	for i, p := range file {
		if !live[p.Key] {
			together = append(together, p)
			places = append(places, fmt.Sprintf("policies[%d].", i))
		}
	}
	err := validateSet(together)
	var e *InvalidError
	if errors.As(err, &e) {
		for i, place := range places {
			if field, ok := strings.CutPrefix(e.Field, fmt.Sprintf("policies[%d].", i)); ok {
				return &InvalidError{Field: place + field, Value: e.Value, Allowed: e.Allowed}
			}
		}
	}
	return err
}
