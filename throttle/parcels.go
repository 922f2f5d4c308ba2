package throttle

import (
	"strconv"

	"github.com/weirq/weir/throttle/internal/script"
)

// A Parcel is one or more released jobs that travel together. It names them; a
// worker gets the jobs themselves when they depart.
type Parcel struct {
	ID    string // ParcelID of its round and its number in the pool
	Round string
	Pool  string // asynq queue
	Jobs  []Hold // at most ParcelSize
}

const (
	// ParcelSize is the most jobs in a parcel.
	ParcelSize = 64
	// MostParcels is the most parcels of one round in one pool: two that follow each
	// other hold more than ParcelSize together.
	MostParcels = 2 * mostPerRound / ParcelSize

	mostPerShard = 256  // jobs of one release: what Redis does in a few milliseconds
	mostPerRound = 4096 // jobs of one round
)

// ParcelID names the n-th parcel of a round in its pool, counted from 0.
func ParcelID(round string, n int) string { return round + "." + strconv.Itoa(n) }

// parcels fills parcels with the jobs of a round, those of one pool together.
type parcels struct {
	filled []Parcel
	open   map[stream]int    // index of the parcel being filled
	count  map[stream]int    // parcels so far
	key    map[stream]string // of the last job
}

type stream struct{ round, pool string }

func newParcels() *parcels {
	return &parcels{open: make(map[stream]int), count: make(map[stream]int), key: make(map[stream]string)}
}

// add packs the jobs that one release of a key took together into one parcel: two
// are handed over at the same time, and may overtake each other.
//
// shard is where they were released, numbered how many parcels the round has from
// an earlier call.
func (p *parcels) add(shard int, round string, numbered int, jobs []script.Released) {
	for n, j := range jobs {
		to := stream{round, j.Pool}
		p.count[to] = max(p.count[to], numbered)
		room := 1
		if p.key[to] != j.Key {
			room, p.key[to] = min(ParcelSize, together(jobs[n:])), j.Key
		}
		i, ok := p.open[to]
		if !ok || len(p.filled[i].Jobs)+room > ParcelSize {
			i = len(p.filled)
			p.filled = append(p.filled, Parcel{ID: ParcelID(round, p.count[to]), Round: round, Pool: j.Pool})
			p.open[to] = i
			p.count[to]++
		}
		p.filled[i].Jobs = append(p.filled[i].Jobs, Hold{Key: j.Key, ID: j.ID, Release: j.Release, Shard: shard})
	}
}

// together counts the jobs at the head that are of the first one's key and pool.
func together(jobs []script.Released) (n int) {
	for _, j := range jobs {
		if j.Key != jobs[0].Key {
			break
		}
		if j.Pool == jobs[0].Pool {
			n++
		}
	}
	return n
}

// numbered is how many parcels of a round there are, in the pool with the most.
func (p *parcels) numbered(round string) (most int) {
	for to, n := range p.count {
		if to.round == round {
			most = max(most, n)
		}
	}
	return most
}
