package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// running starts a batcher that ends with the test.
func running(t *testing.T, most int, call func(context.Context, []int) error) *batcher[int] {
	t.Helper()
	b := newBatcher(most, call)
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		b.run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return b
}

// What comes while a call is under way shares the next, in order.
func TestBatcherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]int
		b := running(t, 4, func(_ context.Context, items []int) error {
			calls = append(calls, slices.Clone(items))
			time.Sleep(time.Millisecond) // the time of the bubble
			return nil
		})
		b.add(1)
		synctest.Wait() // the call for 1 is under way
		b.add(2, 3)
		b.add(4)
		b.add(5, 6)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, [][]int{{1}, {2, 3, 4, 5}, {6}}, calls)
	})
}

func TestBatcherRepeatsUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		b := running(t, 10, func(_ context.Context, items []int) error {
			require.Equal(t, []int{1, 2}, items)
			at = append(at, time.Since(begin))
			if len(at) < 12 {
				return errors.New("away")
			}
			return nil
		})
		b.add(1, 2)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, at, 12)
		for i := range 11 {
			pause := at[i+1] - at[i]
			require.LessOrEqual(t, pause, time.Second, "it has to notice soon that Redis is back")
			require.Equal(t, min(time.Second, 5*time.Millisecond<<i), pause)
		}
	})
}

func TestBatcherEndsWithItsContext(t *testing.T) {
	for name, fails := range map[string]bool{"idle": false, "in trouble": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := newBatcher(1, func(context.Context, []int) error {
					if fails {
						return errors.New("away")
					}
					return nil
				})
				ended := make(chan struct{})
				go func() {
					b.run(ctx)
					close(ended)
				}()
				b.add(1)
				synctest.Wait()
				cancel()
				<-ended // a deadlock of the bubble if it does not end
			})
		})
	}
}

func TestBatcherLosesNothing(t *testing.T) {
	const adders, each = 8, 1000
	seen := make(chan int, adders*each)
	b := running(t, 16, func(_ context.Context, items []int) error {
		for _, i := range items {
			seen <- i
		}
		return nil
	})
	var adding sync.WaitGroup
	for a := range adders {
		adding.Go(func() {
			for i := range each {
				b.add(a*each + i)
			}
		})
	}
	last := map[int]int{}
	for range adders * each {
		i := <-seen
		require.Equal(t, last[i/each], i%each, "items of one caller keep their order")
		last[i/each]++
	}
	adding.Wait()
}
