package main

// Entity status: operations that a disabled queue rejects, when a link attaches and when one is attached.
//
// Source: entity-suspend, and D27 for what is locked.

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var statusCases = Cases{
	"disabled":         statusDisabled,
	"send_disabled":    statusSendDisabled,
	"receive_disabled": statusReceiveDisabled,
	"open_sender":      statusOpenSender,
	"open_receiver":    statusOpenReceiver,
	"locked":           statusLocked,
}

// No client may send to a disabled queue or receive from it; its messages are kept.
func statusDisabled(bus *Bus) {
	bus.send("orders", text("kept"))
	bus.setStatus("Disabled")
	expectDisabled(bus.trySend("orders", text("refused")))
	expectDisabled(bus.receiver("orders").tryReceive())
	bus.setStatus("Active")
	expectNext(bus, "kept")
}

// Clients can receive from a queue that is disabled for sends.
func statusSendDisabled(bus *Bus) {
	bus.send("orders", text("kept"))
	bus.setStatus("SendDisabled")
	expectDisabled(bus.trySend("orders", text("refused")))
	expectNext(bus, "kept")
}

// Clients can send to a queue that is disabled for receives.
func statusReceiveDisabled(bus *Bus) {
	bus.setStatus("ReceiveDisabled")
	bus.send("orders", text("kept"))
	expectDisabled(bus.receiver("orders").tryReceive())
	bus.expectCounts("orders", Counts{"active": 1, "locked": 0})
}

// An open sender is rejected while the queue is disabled, and can send afterwards.
func statusOpenSender(bus *Bus) {
	sender := bus.sender("orders")
	sender.send(text("before"))
	bus.setStatus("Disabled")
	expectDisabled(sender.try(text("meanwhile")))
	bus.setStatus("Active")
	sender.send(text("after"))
	expectNext(bus, "before")
	expectNext(bus, "after")
}

// An open receiver loses its link, and receives again once the queue is active.
func statusOpenReceiver(bus *Bus) {
	receiver := bus.receiver("orders")
	receiver.receiveNothing()
	lost := start(receiver.tryReceive)
	bus.setStatus("ReceiveDisabled")
	bus.send("orders", text("kept"))
	expectDisabled(await("the end of the link", lost))
	bus.setStatus("Active")
	receiver.complete(receiver.one())
}

// A lock keeps its expiry time while its queue is disabled (D27), unless it ends with its link (D2).
func statusLocked(bus *Bus) {
	bus.send("orders", text("held"))
	receiver := bus.receiver("orders")
	held := receiver.one()
	bus.setStatus("Disabled")
	// The response arrives after the detach, so that the SDK knows of the detach when it settles.
	expectDisabled(receiver.renew(held))
	expectDisabled(receiver.CompleteMessage(soon(), held, nil))
	bus.setStatus("Active")
	byToken := &Received{LockToken: held.LockToken}
	if bus.locksOnDetach == "keep" {
		bus.expectCounts("orders", Counts{"active": 1, "locked": 1})
		receiver.complete(byToken)
	} else {
		bus.expectCounts("orders", Counts{"active": 1, "locked": 0})
		expectCode(azservicebus.CodeLockLost, receiver.CompleteMessage(soon(), byToken, nil))
		expectNext(bus, "held")
	}
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
}

func (bus *Bus) setStatus(status string) { bus.configure("orders", Values{"Status": status}) }

func expectDisabled(err error) { expectCondition("com.microsoft:entity-disabled", err) }

// expectNext receives and completes the next message.
func expectNext(bus *Bus, expected string) {
	receiver := bus.receiver("orders")
	defer receiver.close()
	message := receiver.one()
	expect("body", body(message), expected)
	receiver.complete(message)
}
