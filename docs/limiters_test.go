package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/throttletest"
)

const limitersPage = "limiters.md"

// limitersProgram is the page's Go snippets, one after the other, in a program.
const (
	limitersHead = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/limiter"
	"github.com/weirq/weir/throttle/limiter/httplimit"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "ADDRESS"})
	if err := run(context.Background(), client); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, client redis.UniversalClient) error {
`
	limitersTail = `
	return nil
}
`
)

func TestLimiterSnippetsRun(t *testing.T) {
	server := throttletest.StartRedis(t)
	source := limitersHead + strings.Join(snippets(t, limitersPage, "go"), "\n") + limitersTail
	source = strings.ReplaceAll(source, "ADDRESS", server.Addr())
	out, err := exec.Command(buildSource(t, source)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "true 17 9997\n2 true\n", string(out))
}

// rows are those of the page's table with a column, by what stands first in them.
func rows(t *testing.T, column string) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(limitersPage)
	require.NoError(t, err)
	found := make(map[string]map[string]string)
	var head []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			if !strings.HasPrefix(line, "|") {
				head = nil
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if head == nil {
			head = cells
			continue
		}
		row := make(map[string]string)
		for i, cell := range cells {
			row[head[i]] = cell
		}
		if _, ok := row[column]; ok {
			found[cells[0]] = row
		}
	}
	require.Len(t, found, 6, "the page has no row for each algorithm in the table with %q", column)
	return found
}

// tenPer10s are the rules of a limit of 10 per 10 s, or n for that.
func tenPer10s(n int64) []limiter.Rule {
	const per = 10 * time.Second
	l := throttle.Limit{Rate: n, Period: per, Burst: n}
	return []limiter.Rule{
		limiter.FixedWindow(n, per), limiter.SlidingLog(n, per), limiter.SlidingCounter(n, per),
		limiter.TokenBucket(l), limiter.LeakyBucket(l), limiter.LeakyQueue(l),
	}
}

// Versions of Redis differ a little in what they take.
const memoryTolerance = 0.25

var bytesWithUnits = regexp.MustCompile(`(\d+)(?: with (\d+))?`)

func TestLimitersTakeTheMemoryOfTheTable(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	table := rows(t, "bytes of Redis for a key")
	for i := range tenPer10s(10) {
		name := tenPer10s(10)[i].Algorithm().String()
		t.Run(name, func(t *testing.T) {
			for _, m := range bytesWithUnits.FindAllStringSubmatch(table[name]["bytes of Redis for a key"], -1) {
				want, err := strconv.ParseFloat(m[1], 64)
				require.NoError(t, err)
				units := max(1, number(t, m[2]))
				require.NoError(t, client.FlushAll(t.Context()).Err())
				l, err := limiter.New(limiter.NewRedis(client, limiter.RedisConfig{}), "api", tenPer10s(max(10, units))[i])
				require.NoError(t, err)
				r, err := l.AllowN(t.Context(), "user:00000001", units)
				require.NoError(t, err)
				require.True(t, r.Allowed)
				took, err := client.MemoryUsage(t.Context(), "weir:{api:user:00000001}", 0).Result()
				require.NoError(t, err)
				require.InEpsilon(t, want, took, memoryTolerance, "%d units", units)
			}
		})
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

var calledTimes = regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`)

// A decision is one script with the commands of the table: those before a semicolon, if there is nothing to
// forget. Writes are left out of a denial.
func TestLimitersCallTheCommandsOfTheTable(t *testing.T) {
	client := throttletest.StartRedis(t).Client()
	table := rows(t, "commands in the script")
	for _, rule := range tenPer10s(10) {
		name := rule.Algorithm().String()
		t.Run(name, func(t *testing.T) {
			l, err := limiter.New(limiter.NewRedis(client, limiter.RedisConfig{}), strconv.Itoa(int(rule.Algorithm())), rule)
			require.NoError(t, err)
			_, err = l.Allow(t.Context(), "k") // so that the server knows the script, and has a value
			require.NoError(t, err)
			require.NoError(t, client.ConfigResetStat(t.Context()).Err())
			r, err := l.Allow(t.Context(), "k")
			require.NoError(t, err)
			require.True(t, r.Allowed)
			want := map[string]string{"EVALSHA": "1"}
			cell, _, _ := strings.Cut(table[name]["commands in the script"], ";")
			for command := range strings.SplitSeq(cell, ", ") {
				command, times, more := strings.Cut(command, " ×")
				if !more {
					times = "1"
				}
				want[command] = times
			}
			require.Equal(t, want, called(t, client))

			require.NoError(t, client.ConfigResetStat(t.Context()).Err())
			for r.Allowed {
				require.NoError(t, client.ConfigResetStat(t.Context()).Err())
				r, err = l.AllowN(t.Context(), "k", 9)
				require.NoError(t, err)
			}
			for _, write := range []string{"SET", "RPUSH", "LTRIM", "PEXPIRE"} {
				require.NotContains(t, called(t, client), write)
			}
		})
	}
}

// called is how often each command was called since the figures were reset.
func called(t *testing.T, client redis.UniversalClient) map[string]string {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	times := make(map[string]string)
	for _, m := range calledTimes.FindAllStringSubmatch(info, -1) {
		if m[1] != "info" && m[1] != "config" {
			times[strings.ToUpper(m[1])] = m[2]
		}
	}
	return times
}

func TestLimitsThatChangeLeaveWhatTheTableSays(t *testing.T) {
	table := rows(t, "doubled")
	for column, n := range map[string]int64{"left": 10, "doubled": 20, "halved": 5} {
		for i, rule := range tenPer10s(10) {
			now := time.Unix(1_700_000_000, 0)
			store := limiter.NewMemory(limiter.MemoryConfig{Now: func() time.Time { return now }})
			name := rule.Algorithm().String()
			before, err := limiter.New(store, "api", rule)
			require.NoError(t, err)
			_, err = before.AllowN(context.Background(), "k", 5)
			require.NoError(t, err)
			after, err := limiter.New(store, "api", tenPer10s(n)[i])
			require.NoError(t, err)
			r, err := after.Peek(context.Background(), "k")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(r.Remaining), table[name][column], "%s, %s", name, column)
		}
	}
}
