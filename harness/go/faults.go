package servicebustest

import (
	"fmt"
	"runtime"
	"time"
)

// Faults are those of a namespace: operations of clients go wrong where the test says so.
//
// One that has not fired when the test ends fails it, unless it was taken out with [Fault.Remove].
type Faults struct{ bus *Bus }

// Operations are those that are to go wrong. Each method scripts what becomes of them.
type Operations struct {
	faults  *Faults
	request Fields
}

// A Fault is one that was scripted.
type Fault struct {
	faults *Faults
	id     int
}

// On takes the operation and what narrows it as the control API does: On("complete", Fields{"entity": "orders", "nth": 2}).
func (faults *Faults) On(operation string, which ...Fields) *Operations {
	return &Operations{faults, Fields{"operation": operation}.with(which...)}
}

// ServiceUpdate ends all locks and links, as when the service is updated.
func (faults *Faults) ServiceUpdate() {
	faults.bus.t.Helper()
	faults.bus.ask("POST", "service-update", nil, nil)
}

// Apply takes any effect of the control API, by its name: Apply("hold-back", Fields{"behind": 2}).
func (operations *Operations) Apply(effect string, details ...Fields) *Fault {
	faults := operations.faults
	faults.bus.t.Helper()
	request := Fields{"effect": effect, "written_at": place()}.with(operations.request)
	if len(details) > 0 {
		request["effect"] = Fields{effect: Fields{}.with(details...)}
	}
	var made struct{ ID int }
	faults.bus.ask("POST", "faults", request, &made)
	return &Fault{faults, made.ID}
}

// LoseReply has it happen, and the client get no reply.
func (operations *Operations) LoseReply() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("lose-reply")
}

// Reject has it not happen, and the client get the AMQP condition.
func (operations *Operations) Reject(condition string) *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("reject", Fields{"condition": condition})
}

// ServerBusy has it not happen, and the client be told to wait.
func (operations *Operations) ServerBusy() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Reject("com.microsoft:server-busy")
}

// Detach closes the link before it happens.
func (operations *Operations) Detach() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("detach", Fields{"condition": "amqp:link:detach-forced"})
}

// DropConnection ends the connection before it happens, without a close frame.
func (operations *Operations) DropConnection() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("drop")
}

// Delay has it happen later, by the clock of the namespace.
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

// Redeliver has the client be told that its completion has happened, and the message delivered again.
func (operations *Operations) Redeliver() *Fault {
	operations.faults.bus.t.Helper()
	return operations.Apply("deliver-twice")
}

// Hits is how often it fired.
func (fault *Fault) Hits() int {
	fault.faults.bus.t.Helper()
	var told struct{ Hits int }
	fault.faults.bus.ask("GET", fmt.Sprintf("faults/%d", fault.id), nil, &told)
	return told.Hits
}

// Remove takes it out; it need not have fired.
func (fault *Fault) Remove() {
	fault.faults.bus.t.Helper()
	fault.faults.bus.ask("DELETE", fmt.Sprintf("faults/%d", fault.id), nil, nil)
}

// place is the line of the test, which is the first outside of this file.
func place() string {
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
