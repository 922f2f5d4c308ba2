package throttletest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range that systems give to outgoing connections
// (from 32768 on Linux, 49152 elsewhere). A server that is down for a restart
// would otherwise find its port taken by a client, or a client connected to
// itself. Bus ports have a range of their own, so that no server's port is
// another one's bus port.
const (
	firstPort = 11000
	ports     = 9000
	busOffset = 10000 // fixed by Redis: the cluster bus listens this far above the port
)

// freePort picks a port on which nobody listens now, with its bus port free too
// if bus is set. Somebody may take it before the server does.
func freePort(bus bool) (int, error) {
	var last error
	for range 100 {
		port := firstPort + rand.IntN(ports)
		last = tryListen(port)
		if bus {
			last = errors.Join(last, tryListen(port+busOffset))
		}
		if last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port from %d to %d: %w", firstPort, firstPort+ports-1, last)
}

func tryListen(port int) error {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
