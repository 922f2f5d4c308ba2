package config

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

// The annotated file shows every field with the default that it really has.
func TestAnnotatedFile(t *testing.T) {
	const name = "../../../../deploy/throttled.yaml"
	c, err := Load(name)
	require.NoError(t, err)
	for path := range c.fields() {
		if path != maxWaitingPath { // to leave it out has a meaning that no value has
			require.NotEmpty(t, c.Origin(path), "%s is not in the file", path)
		}
	}
	require.Equal(t, []throttle.Policy{throttle.DefaultPolicy}, c.Policies)
	c.Policies, c.origins = nil, Default().origins
	require.Equal(t, Default(), c)

	text, err := os.ReadFile(name)
	require.NoError(t, err)
	uncommented := regexp.MustCompile(`(?m)^#((  +(- )?)?[a-z_]+:( .*)?)$`).ReplaceAllString(string(text), "$1")
	require.NotEqual(t, string(text), uncommented)
	c, err = Read(name, []byte(uncommented))
	require.NoError(t, err, "what is commented out must work as well")
	require.Len(t, c.Policies, 3)
	require.NotNil(t, c.MaxWaiting)
	full := "policies[2]."
	for path, fields := range map[string]map[string]field{
		full:                policyFields(&throttle.Policy{}),
		full + "quotas[1].": quotaFields(&throttle.Quota{}),
		full + "hours.":     hoursFields(&throttle.Hours{}),
		full + "ramp.":      rampFields(&throttle.Ramp{}),
		full + "circuit.":   circuitFields(&throttle.Circuit{}),
	} {
		for field := range fields {
			require.NotEmpty(t, c.Origin(path+field)+c.Origin("policies[0]."+field), "%s%s is not in the file", path, field)
		}
	}
	require.Len(t, c.Policies[2].Hours.Open, 2)
	p := c.Policies[2]
	require.Equal(t, 1, p.Weight, "the default of the weight")
	require.Equal(t, throttle.Sliding, p.Quotas[0].Window, "the default of the window")
	require.Equal(t, throttle.DefaultAgeing, p.Ageing)
	require.Equal(t, throttle.Policy{MaxWaiting: 1}.WithDefaults().Overflow, p.Overflow)
}
