package throttletest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

const (
	clusterNodes = 3
	clusterSlots = 16384 // fixed by Redis
)

// A Cluster is a private Redis Cluster of three masters without replicas, all
// slots spread over them.
type Cluster struct {
	Nodes  []*Redis // each with a client that talks to this node alone
	client *redis.ClusterClient
	close  func() error // once
}

// LaunchCluster starts a cluster in dir and returns once every node takes
// commands and the client knows all masters. An empty dir is a new temporary
// one. ctx bounds the start only.
func LaunchCluster(ctx context.Context, dir string) (*Cluster, error) {
	c := &Cluster{Nodes: make([]*Redis, clusterNodes)}
	c.close = sync.OnceValue(c.closeNow)
	errs := make([]error, clusterNodes)
	var starts sync.WaitGroup
	for i := range c.Nodes {
		starts.Go(func() { c.Nodes[i], errs[i] = launchNode(ctx, dir, i) })
	}
	starts.Wait()
	err := errors.Join(errs...)
	if err == nil {
		err = c.join(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("launch a cluster: %w", err), c.Close())
	}
	return c, nil
}

func launchNode(ctx context.Context, dir string, i int) (*Redis, error) {
	dir, err := ownDir(dir, fmt.Sprintf("node-%d", i))
	if err != nil {
		return nil, err
	}
	return launch(ctx, spec{dir: dir, bus: true, args: []string{
		"--cluster-enabled", "yes",
		"--cluster-announce-ip", "127.0.0.1", // a node does not know its own address before it is told
	}})
}

// join makes a cluster of the nodes: each takes its part of the slots, then the
// first introduces itself to the others.
func (c *Cluster) join(ctx context.Context) error {
	for i, n := range c.Nodes {
		first, next := i*clusterSlots/clusterNodes, (i+1)*clusterSlots/clusterNodes
		if err := n.client.ClusterAddSlotsRange(ctx, first, next-1).Err(); err != nil {
			return fmt.Errorf("give slots %d to %d to %s: %w", first, next-1, n.Addr(), err)
		}
		// Nodes that meet with equal epochs have to sort them out first.
		if err := n.client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return fmt.Errorf("set the epoch of %s: %w", n.Addr(), err)
		}
	}
	for _, n := range c.Nodes[1:] {
		host, port, _ := net.SplitHostPort(n.Addr())
		if err := c.Nodes[0].client.ClusterMeet(ctx, host, port).Err(); err != nil {
			return fmt.Errorf("introduce %s to %s: %w", c.Nodes[0].Addr(), n.Addr(), err)
		}
	}
	for _, n := range c.Nodes {
		err := waitFor(ctx, "node "+n.Addr()+" to see the whole cluster", n.seesCluster)
		if err != nil {
			return err
		}
	}
	c.client = newClient(redis.UniversalOptions{Addrs: c.addrs()}).(*redis.ClusterClient)
	return waitFor(ctx, "the client to see all masters", c.clientSeesMasters)
}

func (r *Redis) seesCluster(ctx context.Context) (final bool, err error) {
	info, err := r.client.ClusterInfo(ctx).Result()
	if err != nil {
		return false, err
	}
	for _, want := range []string{
		"cluster_state:ok",
		fmt.Sprintf("cluster_slots_ok:%d", clusterSlots),
		fmt.Sprintf("cluster_known_nodes:%d", clusterNodes),
		fmt.Sprintf("cluster_size:%d", clusterNodes),
	} {
		if !strings.Contains(info, want+"\r\n") {
			return false, fmt.Errorf("no %s in %q", want, info)
		}
	}
	return true, nil
}

func (c *Cluster) clientSeesMasters(ctx context.Context) (final bool, err error) {
	var (
		mu   sync.Mutex
		seen int
	)
	err = c.client.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		mu.Lock()
		seen++
		mu.Unlock()
		return master.Ping(ctx).Err()
	})
	if err == nil && seen == clusterNodes {
		return true, nil
	}
	c.client.ReloadState(ctx)
	return false, errors.Join(err, fmt.Errorf("%d masters of %d", seen, clusterNodes))
}

func (c *Cluster) addrs() []string {
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.Addr())
	}
	return addrs
}

// URL names all nodes: redis+cluster://host:port,host:port,host:port.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.addrs(), ",") }

// Client is one cluster client for all callers. It ends with Close; do not close
// it.
func (c *Cluster) Client() redis.UniversalClient { return c.client }

// Close stops all nodes and closes the clients. Closing again does nothing.
func (c *Cluster) Close() error { return c.close() }

func (c *Cluster) closeNow() error {
	var err error
	if c.client != nil {
		err = c.client.Close()
	}
	return errors.Join(err, closeAll(c.Nodes...))
}
