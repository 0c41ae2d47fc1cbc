package main

// Deferred messages, which are received only by their sequence numbers.
//
// Source: message-deferral.

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var deferralCases = Cases{
	"by_number":          deferralByNumber,
	"receive_and_delete": deferralReceiveAndDelete,
	"stays_deferred":     deferralStaysDeferred,
	"properties":         deferralProperties,
	"dead_lettered":      deferralDeadLettered,
	"of_dead_letters":    deferralOfDeadLetters,
	"not_found":          deferralNotFound,
	"expired":            deferralExpired,
}

// Receives skip a deferred message, peeks and counts do not; it is received and locked by its sequence number.
func deferralByNumber(bus *Bus) {
	bus.send("orders", texts("a", "b")...)
	receiver := bus.receiver("orders")
	receiver.deferMessages(receiver.receive(2)...)
	bus.expectCounts("orders", Counts{"active": 2, "deferred": 2, "locked": 0})
	receiver.receiveNothing()
	deferred := []azservicebus.MessageState{azservicebus.MessageStateDeferred, azservicebus.MessageStateDeferred}
	expect("states", mapped(receiver.peek(10), state), deferred)
	messages := receiver.deferred(2, 1)
	expect("bodies in the requested order", bodies(messages), []string{"b", "a"})
	expect("deliveries", mapped(messages, deliveries), []uint32{2, 2})
	expect("states", mapped(messages, state), deferred)
	bus.expectCounts("orders", Counts{"locked": 2})
	receiver.complete(messages...)
	bus.expectCounts("orders", Counts{"active": 0, "deferred": 0, "locked": 0})
}

// A receive-and-delete receiver also deletes deferred messages.
func deferralReceiveAndDelete(bus *Bus) {
	bus.send("orders", text("a"))
	deferring := bus.receiver("orders")
	deferring.deferMessages(deferring.one())
	expect("bodies", bodies(bus.receiverWith("orders", destructive()).deferred(1)), []string{"a"})
	bus.expectCounts("orders", Counts{"active": 0, "deferred": 0})
}

// A deferred message stays deferred when it is abandoned or deferred again, or its lock expires.
func deferralStaysDeferred(bus *Bus) {
	bus.send("orders", text("a"))
	receiver := bus.receiver("orders")
	receiver.deferMessages(receiver.one())
	receiver.abandon(receiver.deferred(1)[0])
	message := receiver.deferred(1)[0]
	expect("deliveries after an abandon", deliveries(message), uint32(3))
	receiver.deferMessages(message)
	message = receiver.deferred(1)[0]
	expect("deliveries after a deferral", deliveries(message), uint32(4))
	bus.advance(61)
	expectCode(azservicebus.CodeLockLost, receiver.CompleteMessage(soon(), message, nil))
	receiver.receiveNothing()
	message = receiver.deferred(1)[0]
	expect("deliveries after the lock's end", deliveries(message), uint32(5))
	check(receiver.renew(message))
	receiver.complete(message)
	bus.expectCounts("orders", Counts{"active": 0, "deferred": 0})
}

// Deferring changes properties, and so does every later settlement that keeps the message.
func deferralProperties(bus *Bus) {
	sent := text("a")
	sent.ApplicationProperties = Values{"kept": "k", "changed": int64(1)}
	bus.send("orders", sent)
	receiver := bus.receiver("orders")
	changes := Values{"changed": int64(2), "deferred": true}
	options := &azservicebus.DeferMessageOptions{PropertiesToModify: changes}
	check(receiver.DeferMessage(soon(), receiver.one(), options))
	message := receiver.deferred(1)[0]
	expected := Values{"kept": "k", "changed": int64(2), "deferred": true}
	expect("after a deferral", message.ApplicationProperties, expected)
	abandoning := &azservicebus.AbandonMessageOptions{PropertiesToModify: Values{"changed": int64(3)}}
	check(receiver.AbandonMessage(soon(), message, abandoning))
	message = receiver.deferred(1)[0]
	expected["changed"] = int64(3)
	expect("after an abandon", message.ApplicationProperties, expected)
	check(receiver.DeadLetterMessage(soon(), message, &azservicebus.DeadLetterOptions{
		Reason:             pointer("Rejected"),
		PropertiesToModify: Values{"changed": int64(4)},
	}))
	deadLetters := bus.deadLetters("orders")
	dead := deadLetters.one()
	expect("reason", reason(dead), "Rejected")
	expect("after a dead-lettering", dead.ApplicationProperties["changed"], int64(4))
	deadLetters.complete(dead)
}

// A deferred message is dead-lettered by its receiver, or after its last delivery.
func deferralDeadLettered(bus *Bus) {
	bus.send("limited", texts("bad", "poison")...)
	receiver := bus.receiver("limited")
	receiver.deferMessages(receiver.receive(2)...)
	receiver.deadLetter(receiver.deferred(1)[0], "Rejected", "no total")
	// Deferring was the first delivery (observed 10).
	for range 2 {
		receiver.abandon(receiver.deferred(2)[0])
	}
	bus.expectCounts("limited", Counts{"active": 0, "deferred": 0, "dead_letter": 2})
	deadLetters := bus.deadLetters("limited")
	messages := deadLetters.receive(2)
	expect("bodies", bodies(messages), []string{"bad", "poison"})
	expect("reasons", mapped(messages, reason), []string{"Rejected", "MaxDeliveryCountExceeded"})
	deadLetters.complete(messages...)
}

// A dead-lettered message can be deferred.
func deferralOfDeadLetters(bus *Bus) {
	bus.send("orders", text("bad"))
	receiver := bus.receiver("orders")
	receiver.deadLetter(receiver.one(), "", "")
	deadLetters := bus.deadLetters("orders")
	dead := deadLetters.one()
	deadLetters.deferMessages(dead)
	deadLetters.receiveNothing()
	deadLetters.complete(deadLetters.deferred(number(dead))...)
	bus.expectCounts("orders", Counts{"dead_letter": 0})
}

// Unknown, active and locked messages are not found, and either all messages are received or none.
func deferralNotFound(bus *Bus) {
	bus.send("orders", texts("deferred", "active")...)
	receiver := bus.receiver("orders")
	refused := func(numbers ...int64) { expectCode(azservicebus.CodeNotFound, receiver.tryDeferred(numbers...)) }
	receiver.deferMessages(receiver.one())
	refused(4711)
	refused(2)
	refused(1, 4711)
	messages := receiver.deferred(1)
	refused(1)
	receiver.complete(messages...)
	refused(1)
}

// An expired deferred message is kept until it is requested: then it is not found, and is removed (D9).
func deferralExpired(bus *Bus) {
	for queue, deadLetters := range map[string]int{"expiring": 1, "orders": 0} {
		bus.send(queue, shortLived("old"))
		receiver := bus.receiver(queue)
		receiver.deferMessages(receiver.one())
		bus.advance(31)
		receiver.receiveNothing()
		bus.expectCounts(queue, Counts{"deferred": 1, "dead_letter": 0})
		expectCode(azservicebus.CodeNotFound, receiver.tryDeferred(1))
		bus.expectCounts(queue, Counts{"deferred": 0, "dead_letter": deadLetters})
	}
}

func state(message *Received) azservicebus.MessageState { return message.State }
