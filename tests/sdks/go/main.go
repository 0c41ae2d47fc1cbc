// Runs one named case against the emulator through the Go SDK.
//
//	cases <case>        for example: cases locks.renews
//
// Reads SERVICEBUS_CONNECTION_STRING, SERVICEBUS_CONTROL_URL (the namespace's part of the control API),
// SERVICEBUS_EXPIRY, SERVICEBUS_LOCKS_ON_DETACH and SERVICEBUS_DOOR with its companions; administration clients also
// SERVICEBUS_ADMIN_CONNECTION_STRING and SERVICEBUS_CA_FILE. Exits 0 when the case holds, else prints what differed.
// A case that hangs ends itself, with the stack of every goroutine.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const deadline = 180 * time.Second

// Cases are the cases of a topic by their names.
type Cases = map[string]func(*Bus)

var topics = map[string]Cases{
	"admin":            adminCases,
	"connection":       connectionCases,
	"dead_letter":      deadLetterCases,
	"deferral":         deferralCases,
	"detach":           detachCases,
	"duplicates":       duplicatesCases,
	"expiry":           expiryCases,
	"forwarding":       forwardingCases,
	"idle":             idleCases,
	"limits":           limitsCases,
	"locks":            locksCases,
	"not_found":        notFoundCases,
	"partitions":       partitionsCases,
	"peek":             peekCases,
	"premium":          premiumCases,
	"receive":          receiveCases,
	"refusals":         refusalsCases,
	"rules":            rulesCases,
	"scheduling":       schedulingCases,
	"send":             sendCases,
	"session_locks":    sessionLocksCases,
	"session_messages": sessionMessagesCases,
	"session_state":    sessionStateCases,
	"sessions":         sessionsCases,
	"settle":           settleCases,
	"status":           statusCases,
	"topics":           topicsCases,
}

func main() {
	name := os.Args[1]
	time.AfterFunc(deadline, func() { panic(fmt.Sprintf("go, %s: still running after %s", name, deadline)) })
	if problem := run(name); problem != nil {
		fmt.Printf("%v\ngo, %s: failed\n", problem, name)
		os.Exit(1)
	}
	fmt.Printf("go, %s: passed\n", name)
}

// run returns what a case has against the emulator.
func run(name string) (problem any) {
	defer func() {
		if problem = recover(); problem != nil {
			debug.PrintStack()
		}
	}()
	function := find(name)
	bus := connect(connectionString(), azservicebus.RetryOptions{})
	function(bus)
	check(bus.Close(soon()))
	return nil
}

func find(name string) func(*Bus) {
	topic, of, _ := strings.Cut(name, ".")
	function, ok := topics[topic][of]
	if !ok {
		panic(fmt.Sprintf("there is no case %s", name))
	}
	return function
}
