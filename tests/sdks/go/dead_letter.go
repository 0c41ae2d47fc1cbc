package main

// The dead-letter queue: clients receive from it as from any queue, until it is empty.

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var deadLetterCases = Cases{
	"drains":               deadLetterDrains,
	"drains_destructively": deadLetterDrainsDestructively,
}

// Every dead-lettered message is received in order, with its reason, and then removed.
func deadLetterDrains(bus *Bus) {
	fillDeadLetters(bus, 5)
	receiver := bus.deadLetters("orders")
	reasons := []string{"R0", "R1", "R2", "R3", "R4"}
	expect("reasons peeked", mapped(receiver.peek(10), reason), reasons)
	messages := receiver.receive(5)
	expect("bodies", bodies(messages), []string{"b0", "b1", "b2", "b3", "b4"})
	expect("reasons", mapped(messages, reason), reasons)
	receiver.complete(messages...)
	receiver.receiveNothing()
	expect("peeked afterwards", bodies(bus.deadLetters("orders").peek(10)), []string{})
	bus.expectCounts("orders", Counts{"active": 0, "dead_letter": 0})
}

// Receive-and-delete also empties a dead-letter queue.
func deadLetterDrainsDestructively(bus *Bus) {
	fillDeadLetters(bus, 3)
	options := destructive()
	options.SubQueue = azservicebus.SubQueueDeadLetter
	messages := bus.receiverWith("orders", options).receive(3)
	expect("bodies", bodies(messages), []string{"b0", "b1", "b2"})
	bus.expectCounts("orders", Counts{"active": 0, "dead_letter": 0})
}

// fillDeadLetters dead-letters this number of messages, each with its own reason.
func fillDeadLetters(bus *Bus, count int) {
	sender, receiver := bus.sender("orders"), bus.receiver("orders")
	for index := range count {
		sender.send(text(fmt.Sprintf("b%d", index)))
	}
	for index, message := range receiver.receive(count) {
		receiver.deadLetter(message, fmt.Sprintf("R%d", index), "")
	}
	bus.expectCounts("orders", Counts{"active": 0, "dead_letter": count})
}
