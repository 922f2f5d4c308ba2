package throttle_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

// model is the state of one shard in plain Go, with the arithmetic of throttle.Bucket.
// It answers each call as the scripts must. See lua/shard.lua for what is stored;
// the moves are in model_moves_test.go.
type model struct {
	real         int64 // the server's clock, µs
	last, offset int64 // of the shard's time, as written last
	grace        int64 // until then no lease ends
	steppedTTL   bool  // a step of the clock does not move what is left of a TTL

	version  int64
	policies map[string]string
	buckets  map[string]bucketModel
	lines    map[string]*linesModel
	due      scores
	lease    scores // "id key"
	dead     scores // "id key"
	letters  map[string]script.Letter
	kept     map[string]keptReply // by scheduler
	sweep    bool                 // every bucket is due
	wakes    int

	// Of the call under way.
	now      int64
	loaded   map[string]*bucketModel
	touched  []*bucketModel
	earliest float64
	armed    bool
}

// bucketModel is the hash of a bucket.
type bucketModel struct {
	throttle.Bucket
	key                       string
	max                       int64
	seq, backlog, out, flight int64
	own                       string
	version                   int64
	whole                     bool  // not only the level of an idle bucket
	expires                   int64 // 0: never
	wake                      bool
	lines                     *linesModel
}

// linesModel are the jobs of a bucket.
type linesModel struct {
	waiting, delayed scores
	jobs             map[string]string
	records          map[string]recordModel
}

type recordModel struct {
	state              byte
	cost, seq, attempt int64
	release, run, slot int64
	token, round, pool string
}

type keptReply struct {
	token      string
	due, lease int64
	jobs       []script.Released
	expires    int64
}

// far is beyond every instant: something else will say when to look.
const far = 1<<53 - 1

const defaultPolicyText = "10 1000000 1 100"

func newModel(now time.Time, steppedTTL bool) *model {
	return &model{
		real: now.UnixMicro(), steppedTTL: steppedTTL,
		policies: map[string]string{}, buckets: map[string]bucketModel{}, lines: map[string]*linesModel{},
		due: scores{}, lease: scores{}, dead: scores{}, letters: map[string]script.Letter{}, kept: map[string]keptReply{},
	}
}

// step moves the server's clock.
func (m *model) step(by time.Duration) {
	m.real += by.Microseconds()
	if by >= 0 || !m.steppedTTL {
		return
	}
	for key, b := range m.buckets {
		if b.expires > 0 {
			b.expires += by.Microseconds()
			m.buckets[key] = b
		}
	}
	for s, k := range m.kept {
		k.expires += by.Microseconds()
		m.kept[s] = k
	}
}

// begin is what every script does first.
func (m *model) begin() {
	maps.DeleteFunc(m.buckets, func(_ string, b bucketModel) bool { return b.expires > 0 && m.real >= b.expires })
	maps.DeleteFunc(m.kept, func(_ string, k keptReply) bool { return m.real >= k.expires })
	offset, t := m.offset, m.real+m.offset
	if t < m.last {
		offset, t = m.last-m.real, m.last
	}
	if m.last > 0 && t-m.last > 60_000_000 {
		m.grace = t + 30_000_000
	}
	if t-m.last >= 50_000 || t == m.last {
		m.last, m.offset = t, offset
	}
	m.now = t
	m.loaded, m.touched, m.armed = map[string]*bucketModel{}, nil, false
}

func micros(us int64) time.Time { return time.UnixMicro(us) }

// ── buckets ─────────────────────────────────────────────────────────────────

func (m *model) bucket(key string) *bucketModel {
	if b := m.loaded[key]; b != nil {
		return b
	}
	stored, found := m.buckets[key]
	b := &stored
	if !found {
		b = &bucketModel{key: key, Bucket: throttle.Bucket{At: micros(m.now)}}
	}
	if b.lines = m.lines[key]; b.lines == nil {
		b.lines = &linesModel{waiting: scores{}, delayed: scores{}, jobs: map[string]string{}, records: map[string]recordModel{}}
		m.lines[key] = b.lines
	}
	if !b.whole || b.version != m.version {
		if b.whole || b.Limit.Rate > 0 { // one that rests leaks at its old rate until now
			m.leak(b)
		}
		m.resolve(b)
	}
	m.loaded[key] = b
	m.touched = append(m.touched, b)
	return b
}

func (m *model) resolve(b *bucketModel) {
	text := defaultPolicyText
	for _, p := range []string{m.policies["*"], b.own, m.policies[b.key]} {
		if p != "" {
			text = p
		}
	}
	var period int64
	if _, err := fmt.Sscan(text, &b.Limit.Rate, &period, &b.Limit.Burst, &b.max); err != nil {
		panic(err)
	}
	b.Limit.Period = time.Duration(period) * time.Microsecond
	b.version, b.whole = m.version, true
}

func (m *model) leak(b *bucketModel) { b.Leak(micros(m.now)) }

// wait is how long a job waits for a bucket that holds level.
func (m *model) wait(b *bucketModel, level float64, cost int64) int64 {
	at := micros(m.now)
	other := throttle.Bucket{Limit: b.Limit, Level: level, At: at}
	return other.Wait(at, float64(cost)).Microseconds()
}

// commit stores the buckets that the call touched.
func (m *model) commit() {
	wake := false
	for _, b := range m.touched {
		if len(b.lines.jobs) > 0 {
			wake = wake || b.wake
			b.expires, b.wake = 0, false
			m.buckets[b.key] = *b
			continue
		}
		m.leak(b)
		delete(m.buckets, b.key)
		delete(m.due, b.key)
		if b.Level > 0 {
			empty := min(float64(throttle.MaxWait.Microseconds()), b.Level*float64(b.Limit.Period.Microseconds())/float64(b.Limit.Rate))
			m.buckets[b.key] = bucketModel{
				key: b.key, Bucket: throttle.Bucket{Limit: b.Limit, Level: b.Level, At: b.At}, own: b.own,
				expires: m.real + 1000*(int64(math.Ceil(empty/1000))+1000),
			}
		}
	}
	if wake {
		m.wakes++
	}
}

// ── the due set ─────────────────────────────────────────────────────────────

func (m *model) arm(b *bucketModel, at float64) {
	if !m.armed {
		m.armed, m.earliest = true, math.Inf(1)
		if first, any := m.due.first(); any {
			m.earliest = first
		}
	}
	if set, ok := m.due[b.key]; ok && set <= at {
		return
	}
	m.due[b.key] = at
	if at < m.earliest {
		m.earliest = at
		b.wake = true
	}
}

func (m *model) lookAt(lead, wait int64) float64 {
	grid := max(1, math.Floor(float64(lead)/10))
	at := float64(m.now) + max(0, float64(wait)-float64(lead)/2)
	if at <= float64(m.now) {
		return float64(m.now)
	}
	return math.Ceil(at/grid) * grid
}

func (m *model) rearm(lead int64) {
	for _, b := range m.touched {
		if b.flight >= b.max || len(b.lines.waiting) == 0 {
			continue
		}
		m.leak(b)
		at := m.lookAt(lead, m.wait(b, b.Level+float64(b.out), 1))
		if set, ok := m.due[b.key]; ok && set <= at+float64(lead)/10 {
			continue
		}
		m.arm(b, at)
	}
}

// timeTo is how long until the first instant of a set, -1 if it is empty.
func (m *model) timeTo(s scores) int64 {
	first, any := s.first()
	if !any || first >= far {
		return -1
	}
	return max(0, int64(first)-m.now)
}

// ── jobs ────────────────────────────────────────────────────────────────────

func ref(key, id string) string { return id + " " + key }

// record is what is known of a job; one that was never released and is like most has
// nothing stored.
func (b *bucketModel) record(id string) recordModel {
	if r, ok := b.lines.records[id]; ok {
		return r
	}
	return recordModel{state: 'w', cost: 1, seq: int64(b.lines.waiting[id]), pool: throttle.DefaultPool, token: "-", round: "-"}
}

func (m *model) land(b *bucketModel, id string, r recordModel) {
	b.flight = max(0, b.flight-1)
	if r.state == 'r' {
		b.out = max(0, b.out-r.cost)
	}
	if b.flight == 0 {
		b.out = 0
	}
	delete(m.lease, ref(b.key, id))
}

func (m *model) rejoin(b *bucketModel, id string, r recordModel) {
	r.state, r.token, r.slot, r.round = 'w', "-", 0, "-"
	b.lines.waiting[id] = float64(r.seq)
	b.backlog += r.cost
	b.lines.records[id] = r
}

func (m *model) forget(b *bucketModel, id string) {
	delete(b.lines.jobs, id)
	delete(b.lines.records, id)
}

func (m *model) bury(b *bucketModel, id string, r recordModel, reason string) {
	name := ref(b.key, id)
	m.dead[name] = float64(m.now)
	m.letters[name] = script.Letter{Name: name, Why: fmt.Sprintf("dead %d %d 0 %s %s", r.attempt, r.cost, r.pool, reason)}
	m.forget(b, id)
}

// whereabouts is where a job stands; Wait is the instant of its slot or of the end of its
// delay, 0 for none.
func (m *model) whereabouts(b *bucketModel, id string) script.Place {
	r := b.record(id)
	switch r.state {
	case 'r':
		return script.Place{State: throttle.Released}
	case 'g':
		return script.Place{State: throttle.Running, Wait: r.slot}
	case 'd':
		return script.Place{State: throttle.Delayed, Ahead: float64(b.backlog), Wait: int64(b.lines.delayed[id])}
	}
	rank := slices.Index(b.lines.waiting.sorted(), id)
	ahead := float64(int64(rank)*(b.backlog-r.cost)) / float64(max(1, len(b.lines.waiting)-1))
	return script.Place{State: throttle.Waiting, Position: int64(rank) + 1, Ahead: math.Floor(ahead*1_000_000) / 1_000_000}
}

// ── sorted sets ─────────────────────────────────────────────────────────────

type scores map[string]float64

func (s scores) sorted() []string {
	return slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		if s[a] != s[b] {
			if s[a] < s[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}

// upTo are the first members with a score of at most limit.
func (s scores) upTo(limit int64, most int) []string {
	var out []string
	for _, name := range s.sorted() {
		if s[name] <= float64(limit) && len(out) < most {
			out = append(out, name)
		}
	}
	return out
}

func (s scores) first() (score float64, any bool) {
	for _, v := range s {
		if !any || v < score {
			score, any = v, true
		}
	}
	return score, any
}
