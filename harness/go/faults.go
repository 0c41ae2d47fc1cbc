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
	faults  *Faults
	request Fields
}

// A Fault was added to a namespace.
type Fault struct {
	faults *Faults
	id     int
}

// On selects operations by the fields of the control API: On("complete", Fields{"entity": "orders", "nth": 2}).
func (faults *Faults) On(operation string, which ...Fields) *Operations {
	return &Operations{faults, Fields{"operation": operation}.with(which...)}
}

// ServiceUpdate ends all locks and links, as when the service is updated.
func (faults *Faults) ServiceUpdate() {
	faults.bus.t.Helper()
	faults.bus.ask("POST", "service-update", nil, nil)
}

// Apply adds a fault with any effect of the control API: Apply("hold-back", Fields{"behind": 2}).
func (operations *Operations) Apply(effect string, details ...Fields) *Fault {
	faults := operations.faults
	faults.bus.t.Helper()
	request := Fields{"effect": effect, "written_at": caller()}.with(operations.request)
	if len(details) > 0 {
		request["effect"] = Fields{effect: Fields{}.with(details...)}
	}
	var added struct{ ID int }
	faults.bus.ask("POST", "faults", request, &added)
	return &Fault{faults, added.ID}
}

// LoseReply makes the operation succeed without a reply to the client.
func (operations *Operations) LoseReply() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("lose-reply")
}

// Reject makes the operation fail with this AMQP error condition.
func (operations *Operations) Reject(condition string) *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("reject", Fields{"condition": condition})
}

// ServerBusy makes the operation fail with com.microsoft:server-busy.
func (operations *Operations) ServerBusy() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Reject("com.microsoft:server-busy")
}

// Detach detaches the link before the operation.
func (operations *Operations) Detach() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("detach", Fields{"condition": "amqp:link:detach-forced"})
}

// DropConnection ends the connection before the operation, without a close frame.
func (operations *Operations) DropConnection() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("drop")
}

// Delay delays the operation, by the clock of the namespace.
func (operations *Operations) Delay(delay time.Duration) *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("delay", Fields{"seconds": delay})
}

// LoseLock ends the lock: before a settlement or renewal, after a delivery.
func (operations *Operations) LoseLock() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("lose-lock")
}

// LoseSessionLock ends the lock of the session.
func (operations *Operations) LoseSessionLock() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("lose-session-lock")
}

// Redeliver makes the completion succeed for the client, but delivers the message again.
func (operations *Operations) Redeliver() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("deliver-twice")
}

// Hits is how often the fault has fired.
func (fault *Fault) Hits() int {
	fault.faults.bus.t.Helper()
	var result struct{ Hits int }
	fault.faults.bus.ask("GET", fmt.Sprintf("faults/%d", fault.id), nil, &result)
	return result.Hits
}

// Remove removes the fault, which then does not have to fire.
func (fault *Fault) Remove() {
	fault.faults.bus.t.Helper()
	fault.faults.bus.ask("DELETE", fmt.Sprintf("faults/%d", fault.id), nil, nil)
}

// caller is the line of the test: the first in the call stack that is outside of this file.
func caller() string {
	callers := make([]uintptr, 16)
	_, here, _, _ := runtime.Caller(0)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, more := frames.Next()
		if frame.File != here || !more {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
	}
}
