package main

// Receiving: with a lock, with deletion, several at once, and repeatedly.

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var receiveCases = Cases{
	"peek_lock":          receivePeekLock,
	"receive_and_delete": receiveAndDelete,
	"several":            receiveSeveral,
	"stream":             receiveStream,
	"waiting":            receiveWaiting,
	"prefetch":           receivePrefetch,
	"closed":             receiveClosed,
	"polling":            receivePolling,
}

// A message is locked for the queue's lock duration, and removed when it is completed.
func receivePeekLock(bus *Bus) {
	bus.send("orders", text("one"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("body", body(message), "one")
	expectFreshLock(*message.LockedUntil)
	bus.expectCounts("orders", Counts{"active": 1, "locked": 1})
	receiver.complete(message)
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
	receiver.receiveNothing()
}

// A message is removed as soon as it has been delivered.
func receiveAndDelete(bus *Bus) {
	bus.send("orders", texts("one", "two")...)
	receiver := bus.receiverWith("orders", destructive())
	messages := receiver.receive(2)
	expect("bodies", bodies(messages), []string{"one", "two"})
	expect("deliveries", mapped(messages, deliveries), []uint32{1, 1})
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
	receiver.receiveNothing()
}

// A receive for more messages than available returns those that are available, in order.
func receiveSeveral(bus *Bus) {
	bus.sender("orders").sendBatch(texts(numbered(0, 20)...)...)
	receiver := bus.receiver("orders")
	// By default the SDK returns 20 ms after the first message, which a busy machine may need for the others.
	patiently := &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: 5 * time.Second}
	messages := must(receiver.ReceiveMessages(soon(), 50, patiently))
	expect("bodies", bodies(messages), numbered(0, 20))
	for index := range messages {
		receiver.complete(messages[len(messages)-1-index])
	}
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
}

// A loop of receives gets every message once, also those that arrive meanwhile.
func receiveStream(bus *Bus) {
	seen := start(func() []string {
		receiver, seen := bus.receiver("orders"), []string{}
		for len(seen) < 5 {
			messages := must(receiver.ReceiveMessages(soon(), 3, nil))
			receiver.complete(messages...)
			seen = append(seen, bodies(messages)...)
		}
		return seen
	})
	bus.send("orders", texts(numbered(0, 5)...)...)
	expect("bodies", await("five messages", seen), numbered(0, 5))
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
}

// A receive that is already waiting gets a message that is sent later.
func receiveWaiting(bus *Bus) {
	receiver := bus.receiver("orders")
	received := start(receiver.one)
	bus.send("orders", text("late"))
	message := await("a message", received)
	expect("body", body(message), "late")
	expect("deliveries", deliveries(message), uint32(1))
	receiver.complete(message)
}

// Messages arrive as they are requested; this SDK has no prefetch.
func receivePrefetch(bus *Bus) {
	bus.send("orders", texts(numbered(0, 3)...)...)
	receiver := bus.receiver("orders")
	for index, expected := range numbered(0, 3) {
		message := receiver.one()
		expect("body", body(message), expected)
		bus.expectCounts("orders", Counts{"active": 3 - index, "locked": 1})
		receiver.complete(message)
	}
}

// A closed receiver leaves the messages that it did not receive unchanged, and those that it received locked.
func receiveClosed(bus *Bus) {
	bus.send("orders", texts(numbered(0, 5)...)...)
	closing := bus.receiver("orders")
	held := closing.receive(2)
	closing.close()
	bus.expectCounts("orders", Counts{"active": 5, "locked": 2})
	receiver := bus.receiver("orders")
	rest := receiver.receive(3)
	expect("bodies", bodies(rest), numbered(2, 5))
	expect("deliveries", mapped(rest, deliveries), []uint32{1, 1, 1})
	for _, message := range held {
		// Only by its lock token: the link that delivered it has ended.
		receiver.complete(&Received{LockToken: message.LockToken})
	}
	receiver.complete(rest...)
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
}

// A polling receiver gets messages that arrive between two polls once: the SDK releases them.
func receivePolling(bus *Bus) {
	receiver := bus.receiver("orders")
	for _, expected := range numbered(0, 3) {
		receiver.receiveNothing()
		bus.send("orders", text(expected))
		message := receiver.one()
		expect("body", body(message), expected)
		receiver.complete(message)
	}
	bus.expectCounts("orders", Counts{"active": 0, "locked": 0})
}
