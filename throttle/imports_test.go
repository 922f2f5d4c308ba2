package throttle_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThrottleKnowsNothingOfTransportAndMetrics(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for dep := range strings.FieldsSeq(string(out)) {
		for _, foreign := range []string{"github.com/hibiken/asynq", "github.com/prometheus/", "github.com/weirq/weir/worker"} {
			require.False(t, strings.HasPrefix(dep, foreign), "throttle imports %s", dep)
		}
	}
}
