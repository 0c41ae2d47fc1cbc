package main

// Auto-delete on idle: a queue that no client uses for five minutes is deleted with its messages.
//
// Source: the property AutoDeleteOnIdle of queues. The queue idle has it.

import "github.com/Azure/go-amqp"

var idleCases = Cases{"deleted": idleDeleted, "used": idleUsed}

// After five minutes without use the queue no longer exists, also for an open link.
func idleDeleted(bus *Bus) {
	sender := bus.sender("idle")
	sender.send(text("left"))
	bus.advance(301)
	// The SDK passes on the error with which an open link ends.
	expectCondition(amqp.ErrCondNotFound, sender.try(text("late")))
	expectMissing(bus.receiver("idle").tryReceive())
}

// Sends, peeks and scheduled messages each keep the queue for five more minutes.
func idleUsed(bus *Bus) {
	sender := bus.sender("idle")
	bus.advance(240)
	sender.send(text("kept"))
	bus.advance(240)
	receiver := bus.receiver("idle")
	receiver.peek(1)
	bus.advance(240)
	sender.schedule(later(600), text("later"))
	bus.advance(601)
	bus.advance(240)
	receiver.complete(receiver.receive(2)...)
	receiver.receiveNothing()
}
