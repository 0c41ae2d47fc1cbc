// Runs one named case against the emulator through the Go SDK: `cases deferral.by_number`.
//
// It reads SERVICEBUS_CONNECTION_STRING, SERVICEBUS_CONTROL_URL (the namespace's part of the control API),
// SERVICEBUS_DOOR with its companions, and for administration SERVICEBUS_ADMIN_CONNECTION_STRING and SERVICEBUS_CA_FILE.
// It exits with 0 when the case holds; otherwise it prints what differed.
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"time"
)

// A case that takes longer hangs.
const deadline = 180 * time.Second

var cases = map[string]func(*Bus){}

// register adds the cases of a topic under the names that the other SDKs have for them.
func register(topic string, own map[string]func(*Bus)) {
	for name, run := range own {
		cases[topic+"."+name] = run
	}
}

func main() {
	if len(os.Args) != 2 || cases[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cases NAME, of which there are", slices.Sorted(maps.Keys(cases)))
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Printf("go, %s: %v\n%s", os.Args[1], failure, debug.Stack())
			os.Exit(1)
		}
	}()
	bus := connect(ctx)
	cases[os.Args[1]](bus)
	bus.client.Close(ctx)
	fmt.Printf("go, %s: passed\n", os.Args[1])
}
