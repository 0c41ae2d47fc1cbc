package main

// Auto-delete on idle: a queue that no client uses for five minutes is deleted, with what it holds.
//
// Source: the property AutoDeleteOnIdle of queues. The queue idle has it.

import "github.com/Azure/go-amqp"

var idleCases = Cases{"deleted": idleDeleted, "used": idleUsed}

// After five minutes without use the queue is not there any more, for an open link either.
func idleDeleted(bus *Bus) {
	sender := bus.sender("idle")
	sender.send(text("left"))
	bus.advance(301)
	// The end of a link that was open the SDK hands on as it comes.
	expectCondition(amqp.ErrCondNotFound, sender.try(text("late")))
	expectMissing(bus.receiver("idle").tryReceive())
}

// Sends, peeks and scheduled messages keep it, each for five minutes more.
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
