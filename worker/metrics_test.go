package worker

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestMetricsAreCleanAndFew(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := newMetrics(registry)
	require.NoError(t, err)
	for _, o := range []Outcome{Done, Retry, Dead, Dropped, Parked, Gone} {
		m.attempted(o, time.Millisecond)
		m.departed(-time.Millisecond)
	}

	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	series, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, 8, series) // six outcomes and two histograms

	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			for _, label := range metric.GetLabel() {
				require.Equal(t, "outcome", label.GetName())
			}
		}
	}
}

func TestMetricsRefuseARegisterOfOthers(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := newMetrics(registry)
	require.NoError(t, err)
	_, err = newMetrics(registry)
	require.ErrorContains(t, err, "register metrics")
	_, err = newMetrics(nil)
	require.NoError(t, err)
}
