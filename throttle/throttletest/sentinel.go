package throttletest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// masterName is what the sentinel knows the master by.
const masterName = "weir"

// A Sentinel is a private master with one replica, and a sentinel that watches
// them and decides alone.
type Sentinel struct {
	Nodes   []*Redis // the first master and its replica; failovers swap their roles
	Monitor *Redis   // the sentinel
	client  redis.UniversalClient
	close   func() error // once
}

// LaunchSentinel starts the three in dir and returns once the sentinel has a
// replica that it can fail over to. An empty dir is a new temporary one for
// each. ctx bounds the start only.
func LaunchSentinel(ctx context.Context, dir string) (*Sentinel, error) {
	s := &Sentinel{}
	s.close = sync.OnceValue(s.closeNow)
	if err := s.launch(ctx, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("launch a sentinel: %w", err), s.Close())
	}
	return s, nil
}

func (s *Sentinel) launch(ctx context.Context, dir string) error {
	master, err := launchReplicating(ctx, dir, "node-0")
	if err != nil {
		return err
	}
	s.Nodes = append(s.Nodes, master)
	host, port, _ := net.SplitHostPort(master.Addr())
	replica, err := launchReplicating(ctx, dir, "node-1", "--replicaof", host+" "+port)
	if err != nil {
		return err
	}
	s.Nodes = append(s.Nodes, replica)
	// A sentinel asks a master for its replicas at first sight, and then not again
	// for ten seconds.
	if err := waitFor(ctx, "the replica to follow", replica.follows); err != nil {
		return err
	}
	if s.Monitor, err = launchMonitor(ctx, dir, host, port); err != nil {
		return err
	}
	s.client = newClient(redis.UniversalOptions{Addrs: []string{s.Monitor.Addr()}, MasterName: masterName})
	return waitFor(ctx, "the sentinel to see the replica", s.seesReplica)
}

func launchReplicating(ctx context.Context, dir, name string, args ...string) (*Redis, error) {
	dir, err := ownDir(dir, name)
	if err != nil {
		return nil, err
	}
	// Without the delay a replica gets its first copy at once.
	return launch(ctx, spec{dir: dir, args: append(args, "--repl-diskless-sync-delay", "0")})
}

// launchMonitor gives the sentinel a file of its own, in which it keeps what it
// learns.
func launchMonitor(ctx context.Context, dir, host, port string) (*Redis, error) {
	dir, err := ownDir(dir, "sentinel")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\n"+
		"sentinel down-after-milliseconds %[1]s 1000\n"+
		"sentinel failover-timeout %[1]s 5000\n", masterName, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("configure the sentinel: %w", err)
	}
	return launch(ctx, spec{dir: dir, config: config, args: []string{"--sentinel"}})
}

// follows tells whether the server is a replica that is in touch with its
// master.
func (r *Redis) follows(ctx context.Context) (final bool, err error) {
	info, err := r.client.Info(ctx, "replication").Result()
	if err != nil {
		return false, err
	}
	if !strings.Contains(info, "role:slave\r\n") || !strings.Contains(info, "master_link_status:up\r\n") {
		return false, fmt.Errorf("no role:slave with master_link_status:up in %q", info)
	}
	return true, nil
}

func (s *Sentinel) seesReplica(ctx context.Context) (final bool, err error) {
	known := redis.NewMapStringInterfaceSliceCmd(ctx, "sentinel", "replicas", masterName)
	if err := s.Monitor.client.Process(ctx, known); err != nil {
		return false, err
	}
	for _, replica := range known.Val() {
		if replica["flags"] == "slave" && replica["master-link-status"] == "ok" {
			return true, nil
		}
	}
	return false, fmt.Errorf("the sentinel knows of no replica to fail over to: %v", known.Val())
}

// Master asks the sentinel which of the nodes is the master.
func (s *Sentinel) Master(ctx context.Context) (*Redis, error) {
	hostPort, err := s.Monitor.client.Do(ctx, "sentinel", "get-master-addr-by-name", masterName).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("ask the sentinel at %s for the master: %w", s.Monitor.Addr(), err)
	}
	for _, n := range s.Nodes {
		if n.Addr() == strings.Join(hostPort, ":") {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the sentinel at %s names a master that is none of the nodes: %v", s.Monitor.Addr(), hostPort)
}

// Failover makes the sentinel promote the replica and returns once that takes
// writes as the new master. If the old master answers, it follows the new one by
// then: left alone, a sentinel would see to that only after ten seconds, and the
// old one would go on to take writes that are lost.
func (s *Sentinel) Failover() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	old, err := s.Master(ctx)
	if err != nil {
		return err
	}
	err = waitFor(ctx, "the sentinel to take the order to fail over", func(ctx context.Context) (bool, error) {
		err := s.Monitor.client.Do(ctx, "sentinel", "failover", masterName).Err()
		return err == nil, err
	})
	if err != nil {
		return err
	}
	err = waitFor(ctx, "a new master", func(ctx context.Context) (bool, error) { return s.replaced(ctx, old) })
	if err != nil {
		return err
	}
	return s.demote(ctx, old)
}

// replaced tells whether the sentinel names another master, and that one knows.
func (s *Sentinel) replaced(ctx context.Context, old *Redis) (final bool, err error) {
	now, err := s.Master(ctx)
	if err != nil {
		return false, err
	}
	if now == old {
		return false, fmt.Errorf("%s still is the master", old.Addr())
	}
	info, err := now.client.Info(ctx, "replication").Result()
	if err != nil {
		return false, err
	}
	if !strings.Contains(info, "role:master\r\n") {
		return false, fmt.Errorf("%s does not know that it is the master", now.Addr())
	}
	return true, nil
}

// demote makes the old master follow the new one, unless it is down or paused.
func (s *Sentinel) demote(ctx context.Context, old *Redis) error {
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if old.Pid() == 0 || old.client.Ping(soon).Err() != nil {
		return nil
	}
	now, err := s.Master(ctx)
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(now.Addr())
	if err := old.client.SlaveOf(ctx, host, port).Err(); err != nil {
		return fmt.Errorf("make %s follow %s: %w", old.Addr(), now.Addr(), err)
	}
	return waitFor(ctx, "the old master to follow", old.follows)
}

// URL names the sentinel and the master: redis-sentinel://host:port?master=weir.
func (s *Sentinel) URL() string {
	u := url.URL{Scheme: "redis-sentinel", Host: s.Monitor.Addr(), RawQuery: "master=" + masterName}
	return u.String()
}

// Client is one client for all callers, which goes to whatever the sentinel
// names as the master. It ends with Close; do not close it.
func (s *Sentinel) Client() redis.UniversalClient { return s.client }

// Close stops the sentinel and the nodes, and closes the clients. Closing again
// does nothing.
func (s *Sentinel) Close() error { return s.close() }

func (s *Sentinel) closeNow() error {
	var err error
	if s.client != nil {
		err = s.client.Close()
	}
	// The sentinel first: it would take the end of the nodes for an outage.
	return errors.Join(err, closeAll(s.Monitor), closeAll(s.Nodes...))
}
