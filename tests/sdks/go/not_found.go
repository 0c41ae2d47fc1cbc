package main

// Entities that do not exist: the SDK's error, at once, for every operation.

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var notFoundCases = Cases{
	"sender":       notFoundSender,
	"receiver":     notFoundReceiver,
	"dead_letters": notFoundDeadLetters,
	"peek":         notFoundPeek,
}

// Sending to a missing queue.
func notFoundSender(bus *Bus) {
	expectMissing(bus.sender("missing").SendMessage(within(promptly), text("lost"), nil))
}

// Receiving from a missing queue.
func notFoundReceiver(bus *Bus) { expectMissing(bus.receiver("missing").tryReceive()) }

// Receiving from the dead-letter queue of a missing queue.
func notFoundDeadLetters(bus *Bus) { expectMissing(bus.deadLetters("missing").tryReceive()) }

// Peeking at a missing queue.
func notFoundPeek(bus *Bus) {
	_, err := bus.receiver("missing").PeekMessages(within(promptly), 1, nil)
	expectMissing(err)
}

func expectMissing(err error) { expectCode(azservicebus.CodeNotFound, err) }
