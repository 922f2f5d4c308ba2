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
		require.NotEmpty(t, c.Origin(path), "%s is not in the file", path)
	}
	require.Equal(t, []throttle.Policy{throttle.DefaultPolicy}, c.Policies)
	c.Policies, c.origins = nil, Default().origins
	require.Equal(t, Default(), c)

	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for field := range policyFields(&throttle.Policy{}) {
		require.Regexp(t, `(?m)^  . `+field+`: `, string(text))
	}
	uncommented := regexp.MustCompile(`(?m)^#(  [- ] [a-z_]+: )`).ReplaceAllString(string(text), "$1")
	require.NotEqual(t, string(text), uncommented)
	c, err = Read(name, []byte(uncommented))
	require.NoError(t, err, "what is commented out must work as well")
	require.Len(t, c.Policies, 2)
}
