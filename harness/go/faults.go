package servicebustest

import (
	"fmt"
	"runtime"
	"time"
)

// Faults are injected into operations of the clients of a namespace.
//
// A fault that has not fired when the test ends fails the test, unless it was removed with [Fault.Remove].
type Faults struct{ bus *Bus }

// Operations are those that a fault applies to. Each method adds a fault with one effect.
type Operations struct {
	bus     *Bus
	request Fields
}

// A Fault was added to a namespace.
type Fault struct {
	bus  *Bus
	path string
}

// On selects operations by the fields of the control API: On("complete", Fields{"entity": "orders", "nth": 2}).
func (faults *Faults) On(operation string, which ...Fields) *Operations {
	return &Operations{faults.bus, Fields{"operation": operation}.with(which...)}
}

// ServiceUpdate ends all locks and links, as when the service is updated.
func (faults *Faults) ServiceUpdate() {
	faults.bus.t.Helper()
	ask[any](faults.bus, "POST", "service-update", nil)
}

// Apply adds a fault with any effect of the control API: Apply("hold-back", Fields{"behind": 2}).
func (operations *Operations) Apply(effect string, details ...Fields) *Fault {
	operations.bus.t.Helper()
	return operations.add(effect, details...)
}

// LoseReply makes the operation succeed without a reply to the client.
func (operations *Operations) LoseReply() *Fault {
	operations.bus.t.Helper()
	return operations.add("lose-reply")
}

// Reject makes the operation fail with this AMQP error condition.
func (operations *Operations) Reject(condition string) *Fault {
	operations.bus.t.Helper()
	return operations.add("reject", Fields{"condition": condition})
}

// ServerBusy makes the operation fail with com.microsoft:server-busy.
func (operations *Operations) ServerBusy() *Fault {
	operations.bus.t.Helper()
	return operations.add("reject", Fields{"condition": "com.microsoft:server-busy"})
}

// Detach detaches the link before the operation.
func (operations *Operations) Detach() *Fault {
	operations.bus.t.Helper()
	return operations.add("detach", Fields{"condition": "amqp:link:detach-forced"})
}

// DropConnection ends the connection before the operation, without a close frame.
func (operations *Operations) DropConnection() *Fault {
	operations.bus.t.Helper()
	return operations.add("drop")
}

// Delay delays the operation, by the clock of the namespace.
func (operations *Operations) Delay(delay time.Duration) *Fault {
	operations.bus.t.Helper()
	return operations.add("delay", Fields{"seconds": delay})
}

// LoseLock ends the lock: before a settlement or renewal, after a delivery.
func (operations *Operations) LoseLock() *Fault {
	operations.bus.t.Helper()
	return operations.add("lose-lock")
}

// LoseSessionLock ends the lock of the session.
func (operations *Operations) LoseSessionLock() *Fault {
	operations.bus.t.Helper()
	return operations.add("lose-session-lock")
}

// Redeliver makes the completion succeed for the client, but delivers the message again.
func (operations *Operations) Redeliver() *Fault {
	operations.bus.t.Helper()
	return operations.add("deliver-twice")
}

// add adds a fault for an exported method, whose caller is the line of the test.
func (operations *Operations) add(effect string, details ...Fields) *Fault {
	operations.bus.t.Helper()
	_, file, line, _ := runtime.Caller(2)
	request := Fields{"effect": effect, "written_at": fmt.Sprintf("%s:%d", file, line)}.with(operations.request)
	if len(details) > 0 {
		request["effect"] = Fields{effect: Fields{}.with(details...)}
	}
	added := ask[struct{ ID int }](operations.bus, "POST", "faults", request)
	return &Fault{operations.bus, fmt.Sprintf("faults/%d", added.ID)}
}

// Hits is how often the fault has fired.
func (fault *Fault) Hits() int {
	fault.bus.t.Helper()
	return ask[struct{ Hits int }](fault.bus, "GET", fault.path, nil).Hits
}

// Remove removes the fault, which then does not have to fire.
func (fault *Fault) Remove() {
	fault.bus.t.Helper()
	ask[any](fault.bus, "DELETE", fault.path, nil)
}
