package main

// Settling: complete, abandon up to the delivery limit, dead-letter.

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var settleCases = Cases{
	"completes":             settleCompletes,
	"abandons":              settleAbandons,
	"abandons_to_the_limit": settleAbandonsToTheLimit,
	"dead_letters":          settleDeadLetters,
}

// A completed message is removed, and settling it again does nothing.
func settleCompletes(bus *Bus) {
	bus.send("orders", text("done"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	receiver.complete(message)
	receiver.abandon(message)
	bus.expectCounts("orders", Counts{"active": 0, "dead_letter": 0})
}

// An abandoned message is available again at once, counted, at its old position and with new properties.
func settleAbandons(bus *Bus) {
	first := text("first")
	first.ApplicationProperties = Values{"kept": "k", "changed": int64(1)}
	bus.send("orders", first, text("second"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	changes := &azservicebus.AbandonMessageOptions{PropertiesToModify: Values{"changed": int64(2), "added": "a"}}
	check(receiver.AbandonMessage(soon(), message, changes))
	messages := receiver.receive(2)
	expect("bodies", bodies(messages), []string{"first", "second"})
	expect("deliveries", mapped(messages, deliveries), []uint32{2, 1})
	expect("sequence number", number(messages[0]), int64(1))
	expected := Values{"kept": "k", "changed": int64(2), "added": "a"}
	expect("application properties", messages[0].ApplicationProperties, expected)
	expect("lock is the old one", messages[0].LockToken == message.LockToken, false)
	receiver.complete(messages...)
}

// After the last delivery that a queue allows, a message is dead-lettered and keeps its delivery count (D4).
func settleAbandonsToTheLimit(bus *Bus) {
	bus.send("limited", &Message{Body: []byte("poison"), MessageID: pointer("p-1")})
	receiver := bus.receiver("limited")
	for delivery := range uint32(3) {
		message := receiver.one()
		expect("deliveries", deliveries(message), delivery+1)
		receiver.abandon(message)
	}
	bus.expectCounts("limited", Counts{"active": 0, "dead_letter": 1})
	deadLetters := bus.deadLetters("limited")
	message := deadLetters.one()
	expect("message id", message.MessageID, "p-1")
	expect("reason", reason(message), "MaxDeliveryCountExceeded")
	expected := "Message could not be consumed after 3 delivery attempts."
	expect("description", *message.DeadLetterErrorDescription, expected)
	expect("deliveries", deliveries(message), uint32(4))
	deadLetters.complete(message)
	bus.expectCounts("limited", Counts{"active": 0, "dead_letter": 0})
}

// A dead-lettered message has the application's reason and the properties that it changed.
func settleDeadLetters(bus *Bus) {
	bad := text("bad")
	bad.ApplicationProperties = Values{"kept": int64(1), "changed": "before"}
	bus.send("orders", bad)
	receiver := bus.receiver("orders")
	check(receiver.DeadLetterMessage(soon(), receiver.one(), &azservicebus.DeadLetterOptions{
		Reason:             pointer("Rejected"),
		ErrorDescription:   pointer("no total"),
		PropertiesToModify: Values{"changed": "after", "added": true},
	}))
	deadLetters := bus.deadLetters("orders")
	dead := deadLetters.one()
	expect("body", body(dead), "bad")
	expect("reason", reason(dead), "Rejected")
	expect("description", *dead.DeadLetterErrorDescription, "no total")
	expect("application properties", dead.ApplicationProperties, Values{
		"kept":                       int64(1),
		"changed":                    "after",
		"added":                      true,
		"DeadLetterReason":           "Rejected",
		"DeadLetterErrorDescription": "no total",
	})
	expect("deliveries", deliveries(dead), uint32(1))
	expect("source", dead.DeadLetterSource, (*string)(nil))
	deadLetters.complete(dead)
}
