package webhook

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

// The header of the script names what its body takes.
func TestTheHeaderSaysWhatTheScriptTakes(t *testing.T) {
	header, body, _ := strings.Cut(putSource, "\n\n")
	names := regexp.MustCompile(`(KEYS|ARGV)\[\d+\]`)
	inHeader, inBody := names.FindAllString(header, -1), names.FindAllString(body, -1)
	slices.Sort(inHeader)
	slices.Sort(inBody)
	require.Equal(t, slices.Compact(inHeader), slices.Compact(inBody))
	for _, part := range []string{"-- Purpose: ", "-- Guarantee: ", "-- Reply: "} {
		require.Contains(t, header, part)
	}
	require.Contains(t, body, "'"+versionField+"'")
}

func TestEndpointsInACluster(t *testing.T) {
	b := &bench{client: throttletest.StartCluster(t).Client()}
	var err error
	b.queue, err = throttle.NewQueue(t.Context(), b.client, throttle.QueueConfig{})
	require.NoError(t, err)
	b.endpoints = b.others(t)
	b.create(t, Endpoint{ID: "ep_1"})
	_, err = b.endpoints.Disable(t.Context(), "ep_1", "")
	require.NoError(t, err)
	_, err = b.endpoints.Enable(t.Context(), "ep_1")
	require.NoError(t, err)
	got, err := b.publisher(t).Publish(t.Context(), Event{Type: "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"ep_1"}, receivers(got))
	require.NoError(t, b.endpoints.Delete(t.Context(), "ep_1"))
}
