package throttle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPolicyNames(t *testing.T) {
	for _, name := range []string{"*", "a", "a*", "*a", "a*b", "{*}", " ", strings.Repeat("k", MaxKeyBytes-1) + "*"} {
		require.NoError(t, ValidatePolicyName(name), "%q", name)
	}
	for _, name := range []string{"", "**", "a*b*", "*a*", "\xff*", strings.Repeat("k", MaxKeyBytes) + "*"} {
		var e *InvalidError
		require.ErrorAs(t, ValidatePolicyName(name), &e, "%q", name)
		require.Equal(t, "key", e.Field)
	}
	require.EqualError(t, ValidatePolicyName("a**"), `key "a**" is not allowed: want at most one *, which stands for any text`)
}
