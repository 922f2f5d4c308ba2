package worker

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func TestOneCallerSaysWhatBecomesOfAJob(t *testing.T) {
	for range 200 {
		h := &held{}
		var first atomic.Int64
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				if h.end() {
					first.Add(1)
				}
			})
		}
		callers.Wait()
		require.EqualValues(t, 1, first.Load())
	}
}

func TestLostJobIsCancelled(t *testing.T) {
	h := &held{hold: throttle.Hold{Key: "k", ID: "x", Release: 1}}
	ctx, cancel := context.WithCancelCause(t.Context())
	h.setCancel(cancel)
	_, moves, ok := h.resting()
	require.True(t, ok)
	require.False(t, h.isLost())
	h.lose(moves)
	require.True(t, h.isLost())
	require.ErrorIs(t, context.Cause(ctx), errLost)
}

// Otherwise a run that begins at that moment would never hear of it.
func TestJobLostBeforeItsRunIsCancelledAtOnce(t *testing.T) {
	h := &held{}
	h.lose(0)
	ctx, cancel := context.WithCancelCause(t.Context())
	h.setCancel(cancel)
	require.ErrorIs(t, context.Cause(ctx), errLost)
}

// An answer about the lease says nothing about a job that has moved since it was
// asked.
func TestJobThatMovedMeanwhileIsNotLost(t *testing.T) {
	t.Run("a move is under way", func(t *testing.T) {
		h := &held{}
		_, moves, _ := h.resting()
		h.move()
		h.lose(moves)
		require.False(t, h.isLost())
		_, _, ok := h.resting()
		require.False(t, ok, "the move renews the lease itself")
	})
	t.Run("a move has been made", func(t *testing.T) {
		h := &held{}
		_, moves, _ := h.resting()
		require.Zero(t, h.move().Run)
		h.moved(1)
		h.lose(moves)
		require.False(t, h.isLost())
		hold, moves, ok := h.resting()
		require.True(t, ok)
		require.EqualValues(t, 1, hold.Run)
		h.lose(moves)
		require.True(t, h.isLost())
	})
}

func TestLoadEndsWithItsLastJob(t *testing.T) {
	l := newLoad(3)
	for range 2 {
		l.end()
		select {
		case <-l.done:
			t.Fatal("it has a job left")
		default:
		}
	}
	l.end()
	<-l.done
}

func TestHandsAreEmptyWhenTheLastJobLeaves(t *testing.T) {
	s := newHands(2)
	s.wait() // there is none
	var jobs []*held
	for i := range 10 {
		h := &held{parcel: newLoad(1)}
		h.hold = throttle.Hold{Key: "k", ID: strconv.Itoa(i), Release: 1, Shard: i % 2}
		require.True(t, s.take(h))
		jobs = append(jobs, h)
	}
	require.Len(t, s.all(), 10)
	require.Len(t, s.of(1), 5)
	empty := make(chan struct{})
	go func() {
		s.wait()
		close(empty)
	}()
	for _, h := range jobs {
		select {
		case <-empty:
			t.Error("there are jobs at hand")
		default:
		}
		s.leave(h)
		<-h.parcel.done
	}
	<-empty
	require.Empty(t, s.all())
}

// Two of one release would both be told to go if they asked in one call.
func TestJobIsAtHandOnce(t *testing.T) {
	s := newHands(1)
	release := func(n int64) *held {
		return &held{parcel: newLoad(1), hold: throttle.Hold{Key: "k", ID: "x", Release: n}}
	}
	first := release(1)
	require.True(t, s.take(first))
	first.moved(1)
	require.False(t, s.take(release(1)))
	require.True(t, s.take(release(2)), "it was released again")
	s.leave(first)
	require.True(t, s.take(release(1)))
	require.Len(t, s.all(), 2)
}

func TestAbandonedHandsAreNotWaitedFor(t *testing.T) {
	s := newHands(1)
	h := &held{parcel: newLoad(1)}
	s.take(h)
	ended := make(chan struct{})
	go func() {
		s.wait()
		close(ended)
	}()
	s.abandon()
	<-ended
	s.leave(h) // if it ends after all
	s.wait()
}

func TestParcelWithoutJobsHasEnded(t *testing.T) { <-newLoad(0).done }
