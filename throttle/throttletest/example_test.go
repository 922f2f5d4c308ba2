package throttletest_test

import (
	"fmt"
	"time"

	"github.com/weirq/weir/throttle"
	"github.com/weirq/weir/throttle/throttletest"
)

func ExampleMeasure() {
	limits := map[string]throttle.Limit{"billing": {Rate: 10, Period: time.Second, Burst: 2}}
	expected := map[string][]string{"billing": {"a", "b", "c", "d"}}

	start := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	reports, err := throttletest.Measure(limits, []throttletest.Event{
		{Key: "billing", ID: "a", At: start},
		{Key: "billing", ID: "b", At: start},
		{Key: "billing", ID: "c", At: start.Add(100 * time.Millisecond)},
		{Key: "billing", ID: "c", At: start.Add(100 * time.Millisecond)},
	}, expected)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reports.Check(throttletest.Bounds{MinRatio: 0.99, MaxExcess: 0.5, Ordered: true}))
	// Output:
	// key "billing", 10/s burst 2: excess 1 is above max_excess 0.5 (cost 4 from 0s to 100ms after the first); lost 1 (d), allowed 0; duplicated 1 (c), allowed 0
}
