package main

// Receivers that close with a message locked, under both settings of D2.

import (
	"encoding/json"
	"os"
	"os/exec"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var detachCases = Cases{
	"closed":           detachClosed,
	"settled_by_token": detachSettledByToken,
	"dropped":          detachDropped,
	"dies":             detachDies,
}

// A receiver is closed with a message locked; the lock is kept, or released at once.
func detachClosed(bus *Bus) {
	held := receiveAndClose(bus)
	receiver := bus.receiver("orders")
	if bus.locksOnDetach == "keep" {
		receiver.receiveNothing()
		bus.expectCounts("orders", Counts{"active": 1, "locked": 1})
		// The lock is kept: its token still renews it.
		check(receiver.renew(held))
	} else {
		again := receiver.one()
		expect("deliveries", deliveries(again), uint32(1))
		expectCode(azservicebus.CodeLockLost, receiver.renew(held))
		receiver.abandon(again)
	}
	expectReturn(bus)
}

// After its receiver is closed, a message is settled by its lock token while the lock is valid.
func detachSettledByToken(bus *Bus) {
	held := &Received{LockToken: receiveAndClose(bus).LockToken}
	receiver := bus.receiver("orders")
	if bus.locksOnDetach == "keep" {
		receiver.complete(held)
		bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
	} else {
		expectCode(azservicebus.CodeLockLost, receiver.CompleteMessage(soon(), held, nil))
		again := receiver.one()
		expect("deliveries", deliveries(again), uint32(1))
		receiver.complete(again)
	}
}

// A process is killed with a message locked, which ends its connection.
func detachDropped(bus *Bus) {
	bus.send("orders", text("held"))
	dying := exec.CommandContext(soon(), must(os.Executable()))
	dying.Stderr = os.Stderr
	requests := must(dying.StdinPipe())
	check(dying.Start())
	// Its standard input stays open meanwhile, because closing it would end the process first.
	check(json.NewEncoder(requests).Encode(Request{1, "detach.dies", bus.Environment}))
	check(dying.Wait())
	if bus.locksOnDetach == "release" {
		bus.expectCounts("orders", Counts{"active": 1, "locked": 0})
		receiver := bus.receiver("orders")
		message := receiver.one()
		expect("deliveries", deliveries(message), uint32(1))
		receiver.abandon(message)
	} else {
		bus.expectCounts("orders", Counts{"active": 1, "locked": 1})
	}
	expectReturn(bus)
}

// Receives one message and exits without closing anything: the system closes the socket.
func detachDies(bus *Bus) {
	bus.receiver("orders").one()
	os.Exit(0)
}

func receiveAndClose(bus *Bus) *Received {
	bus.send("orders", text("held"))
	receiver := bus.receiver("orders")
	defer receiver.close()
	return receiver.one()
}

// After a minute the message is available again, counted once, by its expired lock or by the abandon.
func expectReturn(bus *Bus) {
	bus.advance(61)
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("deliveries", deliveries(message), uint32(2))
	receiver.complete(message)
	bus.expectCounts("orders", Counts{"active": 0, "dead_letter": 0})
}
