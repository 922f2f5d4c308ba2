package main

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	_ = os.Unsetenv(redisEnv) // or the tests would write where the developer works
	goleak.VerifyTestMain(m)
}
