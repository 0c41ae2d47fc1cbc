package main

// Peeking: messages and their states, from a sequence number on.

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var peekCases = Cases{"states": peekStates, "from_sequence_number": peekFromSequenceNumber, "empty": peekEmpty}

// Peeking shows locked and waiting messages, and both are active.
func peekStates(bus *Bus) {
	bus.send("orders", texts("locked", "waiting")...)
	receiver := bus.receiver("orders")
	locked := receiver.one()
	peeked := receiver.peek(10)
	expect("numbers", mapped(peeked, number), []int64{1, 2})
	expect("bodies", bodies(peeked), []string{"locked", "waiting"})
	active := []azservicebus.MessageState{azservicebus.MessageStateActive, azservicebus.MessageStateActive}
	expect("states", mapped(peeked, state), active)
	receiver.complete(locked)
}

// A peek starts at a sequence number, continues where the last one ended, and changes no message.
func peekFromSequenceNumber(bus *Bus) {
	bus.sender("orders").sendBatch(texts(numbered(1, 11)...)...)
	receiver := bus.receiver("orders")
	expect("the first", mapped(receiver.peek(2), number), []int64{1, 2})
	expect("those behind", mapped(receiver.peek(20), number), []int64{3, 4, 5, 6, 7, 8, 9, 10})
	peeked := receiver.peek(3, 5)
	expect("sequence numbers", mapped(peeked, number), []int64{5, 6, 7})
	expect("bodies", bodies(peeked), numbered(5, 8))
	expect("deliveries", mapped(peeked, deliveries), []uint32{1, 1, 1})
	expect("the last", mapped(receiver.peek(3, 10), number), []int64{10})
	expect("past the end", bodies(receiver.peek(3, 11)), []string{})
	bus.expectCounts("orders", Counts{"active": 10, "locked": 0})
}

// A peek at an empty queue returns an empty list, not an error.
func peekEmpty(bus *Bus) { expect("peeked", bodies(bus.receiver("orders").peek(5)), []string{}) }
