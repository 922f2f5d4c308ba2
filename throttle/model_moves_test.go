package throttle_test

import (
	"maps"
	"math"
	"strings"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/internal/script"
)

func (m *model) enqueue(entries []script.Entry) (now int64, places []script.Place) {
	m.begin()
	for _, e := range entries {
		b := m.bucket(e.Key)
		m.leak(b)
		if _, known := b.lines.jobs[e.ID]; known {
			p := m.placed(b, e.ID)
			p.How, p.Other = script.Known, e.ID
			places = append(places, p)
			continue
		}
		b.lines.jobs[e.ID] = string(e.Job)
		if e.Policy != "" && e.Policy != b.own {
			b.own = e.Policy
			m.resolve(b)
			if b.backlog > 0 {
				m.arm(b, float64(m.now))
			}
		}
		b.seq = max(b.seq+1, m.now)
		r := recordModel{state: 'w', cost: e.Cost, seq: b.seq, pool: e.Pool, token: "-", round: "-"}
		if e.NotBefore > m.real {
			r.state = 'd'
			at := float64(m.now + e.NotBefore - m.real)
			b.lines.delayed[e.ID] = at
			b.lines.records[e.ID] = r
			m.arm(b, at)
			places = append(places, m.placed(b, e.ID))
			continue
		}
		b.lines.waiting[e.ID] = float64(b.seq)
		if b.backlog == 0 {
			m.arm(b, float64(m.now))
		}
		if e.Cost != 1 || e.Pool != throttle.DefaultPool {
			b.lines.records[e.ID] = r
		}
		b.backlog += e.Cost
		places = append(places, m.placed(b, e.ID))
	}
	m.commit()
	return m.real, places
}

// placed is what enqueue tells of a job.
func (m *model) placed(b *bucketModel, id string) script.Place {
	p := m.whereabouts(b, id)
	p.Wait = max(0, p.Wait-m.now)
	p.Other = id
	return p
}

func (m *model) release(r script.Releasing) (due, lease int64, jobs []script.Released) {
	m.begin()
	if k, ok := m.kept[r.Scheduler]; ok && k.token == r.Token {
		return k.due, k.lease, k.jobs
	}
	if m.sweep {
		for key, at := range m.due {
			m.due[key] = min(at, float64(m.now))
		}
		m.sweep = false
	}
	promotions := r.Most
	for _, key := range m.due.upTo(m.now, 96) {
		if r.Most-len(jobs) <= 0 {
			break
		}
		b := m.bucket(key)
		m.leak(b)
		for _, id := range b.lines.delayed.upTo(m.now, min(64, promotions)) {
			promotions--
			delete(b.lines.delayed, id)
			m.rejoin(b, id, b.record(id))
		}
		handed, at, again := m.drain(b, r, r.Most-len(jobs))
		jobs = append(jobs, handed...)
		if first, any := b.lines.delayed.first(); any && (!again || first < at) {
			at, again = first, true
		}
		m.due[key] = far
		if again {
			m.due[key] = at
		}
	}
	m.commit()
	due, lease = m.timeTo(m.due), m.timeTo(m.lease)
	if len(jobs) > 0 {
		m.kept[r.Scheduler] = keptReply{r.Token, due, lease, jobs, m.real + 60_000_000}
	}
	return due, lease, jobs
}

// drain hands out what is near its slot, and tells when to look again, if at all.
func (m *model) drain(b *bucketModel, r script.Releasing, budget int) (jobs []script.Released, at float64, again bool) {
	want := min(int64(budget), b.max-b.flight, 64)
	line := b.lines.waiting.sorted()
	line = line[:max(0, min(int(want), len(line)))]
	level := b.Level + float64(b.out)
	var wait int64
	for _, id := range line {
		job := b.record(id)
		if wait = m.wait(b, level, job.cost); wait > r.Lead {
			break
		}
		level += float64(job.cost)
		job.state, job.round = 'r', r.Round
		job.release = max(job.release+1, m.now/1000)
		b.out, b.flight, b.backlog = b.out+job.cost, b.flight+1, b.backlog-job.cost
		b.lines.records[id] = job
		m.lease[ref(b.key, id)] = float64(m.now + r.Lease)
		jobs = append(jobs, script.Released{Key: b.key, ID: id, Release: job.release, Pool: job.pool})
	}
	for _, j := range jobs {
		delete(b.lines.waiting, j.ID)
	}
	switch {
	case len(b.lines.waiting) == 0:
		b.backlog = 0
		return jobs, 0, false
	case b.flight >= b.max:
		return jobs, 0, false
	case len(jobs) == len(line):
		return jobs, float64(m.now), true
	case len(jobs) == 0 && b.out > 0 && m.wait(b, float64(b.out), b.record(line[0]).cost) > r.Lead:
		return nil, 0, false
	}
	return jobs, m.lookAt(r.Lead, wait), true
}

func (m *model) depart(lead, lease int64, token string, jobs []script.Hold) (now int64, slots []script.Slot) {
	m.begin()
	for _, h := range jobs {
		b := m.bucket(h.Key)
		m.leak(b)
		slot := script.Slot{Rate: b.Limit.Rate, Period: b.Limit.Period.Microseconds(), Burst: b.Limit.Burst}
		r, known := b.lines.records[h.ID]
		blob := ""
		if h.Run == 0 {
			blob = b.lines.jobs[h.ID]
		}
		known = known && r.release == h.Release
		repeated := known && r.state == 'g' && r.token == token
		first := known && h.Run == 0 && r.state == 'r'
		missed := known && h.Run > 0 && r.state == 'g' && r.run == h.Run
		switch {
		case repeated:
		case !first && !missed:
			slots = append(slots, slot)
			continue
		default:
			wait := m.wait(b, b.Level, r.cost)
			if wait > 2*lead {
				if missed {
					r.attempt--
				}
				m.land(b, h.ID, r)
				m.rejoin(b, h.ID, r)
				slot.Status, slot.Run, slot.Attempt = script.Parked, r.run, r.attempt
				slots = append(slots, slot)
				continue
			}
			if first {
				r.attempt++
				b.out = max(0, b.out-r.cost)
			}
			b.Take(micros(m.now), float64(r.cost))
			r.state, r.run, r.token, r.slot = 'g', r.run+1, token, m.now+wait
			b.lines.records[h.ID] = r
			m.lease[ref(h.Key, h.ID)] = float64(r.slot + lease)
		}
		slot.Status, slot.At, slot.Run, slot.Attempt, slot.Job = script.Go, r.slot, r.run, r.attempt, blob
		slots = append(slots, slot)
	}
	m.rearm(lead)
	m.commit()
	return m.now, slots
}

// holds tells whether a job is held under these numbers.
func (b *bucketModel) holds(h script.Hold) bool {
	r, known := b.lines.records[h.ID]
	if h.Run == 0 {
		return known && r.state == 'r' && r.release == h.Release
	}
	return known && r.state == 'g' && r.release == h.Release && r.run == h.Run
}

func (m *model) finish(lead int64, ends []script.End) (held []bool) {
	m.begin()
	for _, e := range ends {
		b := m.bucket(e.Key)
		held = append(held, b.holds(e.Hold))
		if !b.holds(e.Hold) {
			continue
		}
		r := b.lines.records[e.ID]
		m.land(b, e.ID, r)
		switch e.What {
		case script.Done:
			m.forget(b, e.ID)
		case script.Dead:
			m.bury(b, e.ID, r, e.Reason)
		case script.Retry:
			r.state, r.token, r.slot, r.round = 'd', "-", 0, "-"
			b.lines.delayed[e.ID] = float64(m.now + e.Delay)
			b.lines.records[e.ID] = r
			m.arm(b, float64(m.now+e.Delay))
		case script.Return:
			if r.state == 'g' {
				r.attempt = max(0, r.attempt-1)
			}
			m.rejoin(b, e.ID, r)
		}
	}
	m.rearm(lead)
	m.commit()
	return held
}

func (m *model) extend(lease int64, jobs []script.Hold) (held []bool) {
	m.begin()
	for _, h := range jobs {
		b := m.bucket(h.Key)
		held = append(held, b.holds(h))
		if b.holds(h) {
			m.lease[ref(h.Key, h.ID)] = float64(m.now + lease)
		}
	}
	return held
}

func (m *model) overdue(most int) (next int64, jobs []script.Overdue) {
	m.begin()
	if m.now < m.grace {
		return m.grace - m.now, nil
	}
	for _, name := range m.lease.upTo(m.now, most) {
		id, key, _ := strings.Cut(name, " ")
		r := m.lines[key].records[id]
		jobs = append(jobs, script.Overdue{
			Hold:     script.Hold{Key: key, ID: id, Release: r.release, Run: r.run},
			Departed: r.state == 'g', Round: r.round, Pool: r.pool,
		})
	}
	return m.timeTo(m.lease), jobs
}

func (m *model) reap(lead, lease int64, verdicts []script.Verdict) (done []bool) {
	m.begin()
	for _, v := range verdicts {
		b := m.bucket(v.Key)
		r, known := b.lines.records[v.ID]
		till, leased := m.lease[ref(v.Key, v.ID)]
		ok := known && (r.state == 'r' || r.state == 'g') && r.release == v.Release && r.run == v.Run &&
			leased && till <= float64(m.now)
		done = append(done, ok)
		switch {
		case !ok:
		case v.Extend:
			m.lease[ref(v.Key, v.ID)] = float64(m.now + lease)
		default:
			m.land(b, v.ID, r)
			m.rejoin(b, v.ID, r)
		}
	}
	m.rearm(lead)
	m.commit()
	return done
}

func (m *model) setPolicies(policies map[string]string) (changed int64) {
	m.begin()
	if maps.Equal(m.policies, policies) {
		return 0
	}
	m.policies = policies
	m.version++
	m.sweep = true
	m.wakes++
	return 1
}

func (m *model) find(key, id string) (f script.Found, alive bool) {
	m.begin()
	b := m.bucket(key)
	if _, ok := b.lines.jobs[id]; !ok {
		return script.Found{}, false
	}
	at, r := m.whereabouts(b, id), b.record(id)
	jobs := max(0, at.Position-1)
	if at.State == throttle.Delayed {
		jobs = int64(len(b.lines.waiting))
	}
	return script.Found{
		OK: true, Now: m.real, ShardNow: m.now, State: at.State, Position: at.Position, Jobs: jobs, Ahead: at.Ahead,
		At: at.Wait, Attempts: r.attempt, Cost: r.cost, Pool: r.pool, Enqueued: r.seq,
	}, true
}

func (m *model) stat(key string) script.Counts {
	m.begin()
	b := m.bucket(key)
	m.leak(b)
	oldest, ended := int64(0), int64(0)
	if line := b.lines.waiting.sorted(); len(line) > 0 {
		oldest = b.record(line[0]).seq
	}
	for name := range m.dead {
		if _, other, _ := strings.Cut(name, " "); other == key {
			ended++
		}
	}
	return script.Counts{
		Now: m.real, ShardNow: m.now, Ended: ended, Oldest: oldest, MicroBacklog: b.backlog * 1_000_000,
		Waiting: int64(len(b.lines.waiting)), Delayed: int64(len(b.lines.delayed)), InFlight: b.flight,
		MicroLevel: int64(math.Floor(b.Level * 1_000_000)),
		Policy:     policyText(b.Limit.Rate, b.Limit.Period, b.Limit.Burst, int(b.max)),
	}
}

func (m *model) purge(p script.Purging) (removed int64) {
	m.begin()
	b := m.bucket(p.Key)
	line := b.lines.waiting
	if p.State == script.ListDelayed {
		line = b.lines.delayed
	}
	ids := line.sorted()
	stirred := false
	for _, id := range ids[min(len(ids), int(p.From)):min(len(ids), int(p.From+p.Most))] {
		if r := b.record(id); r.state == 'w' {
			b.backlog = max(0, b.backlog-r.cost)
			stirred = true
		}
		delete(line, id)
		m.forget(b, id)
		removed++
	}
	if stirred {
		m.rearm(lead)
	}
	if removed > 0 {
		m.commit()
	}
	return removed
}

func (m *model) deadLetters(most int) (letters []script.Letter) {
	m.begin()
	names := m.dead.sorted()
	for _, name := range names[:min(most, len(names))] {
		l := m.letters[name]
		l.At = int64(m.dead[name])
		letters = append(letters, l)
	}
	return letters
}
