// Runs named cases against the emulator through the Go SDK, in one process.
//
// Every line of standard input is a request, {"id": 1, "case": "locks.renews", "environment": {…}}. Each runs in a
// goroutine of its own and is answered by a line on standard output, {"id": 1, "passed": true, "output": ""}.
// The environment is a case's own: SERVICEBUS_CONNECTION_STRING, SERVICEBUS_CONTROL_URL (the namespace's part of the
// control API), SERVICEBUS_EXPIRY, SERVICEBUS_LOCKS_ON_DETACH, SERVICEBUS_CA_FILE and SERVICEBUS_TRANSPORT with its
// companion; for administration clients also SERVICEBUS_ADMIN_CONNECTION_STRING. The requests decide how many cases run
// side by side. A case that hangs is answered with the stack of every goroutine. The process ends with its standard input.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
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
	"observed":         observedCases,
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

// Request is a line of standard input.
type Request struct {
	ID          int         `json:"id"`
	Case        string      `json:"case"`
	Environment Environment `json:"environment"`
}

// Answer is a line of standard output.
type Answer struct {
	ID     int    `json:"id"`
	Passed bool   `json:"passed"`
	Output string `json:"output"`
}

func main() {
	answers := answersTo(os.Stdout)
	// Other output must not be mistaken for a response.
	os.Stdout = os.Stderr
	requests := json.NewDecoder(os.Stdin)
	for {
		var request Request
		if requests.Decode(&request) != nil {
			return
		}
		go func() { answers(request.answer()) }()
	}
}

// answersTo writes answers one by one.
func answersTo(file *os.File) func(Answer) {
	var writing sync.Mutex
	encoder := json.NewEncoder(file)
	return func(answer Answer) {
		writing.Lock()
		defer writing.Unlock()
		check(encoder.Encode(answer))
	}
}

// answer runs a case up to the deadline.
func (request Request) answer() Answer {
	ended := make(chan string, 1)
	go func() { ended <- request.run() }()
	var output string
	select {
	case output = <-ended:
	case <-time.After(deadline):
		stacks := make([]byte, 1<<20)
		output = fmt.Sprintf("still running after %s\n%s", deadline, stacks[:runtime.Stack(stacks, true)])
	}
	return Answer{request.ID, output == "", output}
}

// run returns the failure of a case, if any.
func (request Request) run() (problem string) {
	defer func() {
		if cause := recover(); cause != nil {
			problem = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	function := find(request.Case)
	bus := request.Environment.connect(request.Environment.connectionString(), azservicebus.RetryOptions{})
	function(bus)
	check(bus.Close(soon()))
	return ""
}

func find(name string) func(*Bus) {
	topic, of, _ := strings.Cut(name, ".")
	function, ok := topics[topic][of]
	if !ok {
		panic(fmt.Sprintf("there is no case %s", name))
	}
	return function
}
