package worker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
)

func inLine(key string, ids ...string) []*held {
	jobs := make([]*held, len(ids))
	for i, id := range ids {
		jobs[i] = &held{hold: throttle.Hold{Key: key, ID: id}}
	}
	return jobs
}

// admitting returns places and the ids they have admitted.
func admitting(n int) (*places, func() []string) {
	var ids []string
	return newPlaces(n, func(jobs []*held) {
			for _, h := range jobs {
				ids = append(ids, h.hold.ID)
			}
		}), func() []string {
			defer func() { ids = nil }()
			return ids
		}
}

func TestPlacesAdmitWhatFits(t *testing.T) {
	p, admitted := admitting(3)
	require.Empty(t, p.add(inLine("a", "a1", "a2")))
	require.Equal(t, []string{"a1", "a2"}, admitted())
	require.Empty(t, p.add(inLine("a", "a3", "a4", "a5")))
	require.Equal(t, []string{"a3"}, admitted())
	p.leave(2)
	require.Equal(t, []string{"a4", "a5"}, admitted())
	p.leave(3)
	require.Empty(t, admitted())
	require.Equal(t, 3, p.free)
	require.Empty(t, p.lines, "a key without jobs leaves nothing behind")
}

func TestPlacesGiveKeysTurns(t *testing.T) {
	p, admitted := admitting(1)
	p.add(inLine("mountain", "m1", "m2", "m3", "m4"))
	p.add(append(inLine("b", "b1"), inLine("c", "c1", "c2")...))
	order := admitted()
	for range 6 {
		p.leave(1)
		order = append(order, admitted()...)
	}
	require.Equal(t, []string{"m1", "m2", "b1", "c1", "m3", "c2", "m4"}, order)
}

func TestPlacesKeepTheOrderOfAKey(t *testing.T) {
	p, admitted := admitting(2)
	next := map[string]int{}
	for i := range 200 {
		key := fmt.Sprintf("k%d", i%7)
		p.add(inLine(key, fmt.Sprintf("%s %d", key, i/7)))
	}
	for range 200 {
		for _, id := range admitted() {
			key, n := "", 0
			_, err := fmt.Sscan(id, &key, &n)
			require.NoError(t, err)
			require.Equal(t, next[key], n)
			next[key]++
		}
		p.leave(1)
	}
	require.Len(t, next, 7)
}

func TestClosedPlacesTakeNobody(t *testing.T) {
	p, admitted := admitting(1)
	p.add(append(inLine("a", "a1", "a2"), inLine("b", "b1")...))
	require.Equal(t, []string{"a1"}, admitted())
	rest := p.close()
	require.Len(t, rest, 2)
	require.Len(t, p.add(inLine("c", "c1")), 1)
	p.leave(1)
	require.Empty(t, admitted())
	require.Empty(t, p.close())
}

func TestPlacesAreNeverOverfull(t *testing.T) {
	const n, adders, each = 5, 4, 500
	var in, most, total atomic.Int64
	var all sync.WaitGroup
	all.Add(adders * each)
	var p *places
	p = newPlaces(n, func(jobs []*held) {
		now := in.Add(int64(len(jobs)))
		most.Store(max(most.Load(), now))
		go func() { // as jobs leave: one by one, whenever they are done
			for range jobs {
				total.Add(1)
				in.Add(-1)
				p.leave(1)
				all.Done()
			}
		}()
	})
	for range adders {
		go func() {
			for range each {
				p.add(inLine(fmt.Sprint(rand.IntN(10)), "x"))
			}
		}()
	}
	all.Wait()
	require.EqualValues(t, adders*each, total.Load())
	require.LessOrEqual(t, most.Load(), int64(n))
	require.Equal(t, n, p.free)
}
