package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle/throttletest"
)

// All is measured once, for so short a time that only the errors count.
func TestFiguresCanBeMeasured(t *testing.T) {
	ctx := t.Context()
	client := throttletest.StartRedis(t).Client()
	var figures table
	require.NoError(t, decisions(ctx, client, &figures, 1, time.Millisecond))
	require.NoError(t, memory(ctx, client, &figures))
	for _, f := range figures.figures {
		require.Positive(t, f.Value, f.Name)
	}
	require.ErrorIs(t, (&table{figures: []figure{{OK: true}, {}}}).print(true), errBound)
}
