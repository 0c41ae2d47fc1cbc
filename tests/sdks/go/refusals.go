package main

// Other errors, as the SDK's error or with the AMQP condition that it passes on.
//
// Source: service-bus-messaging-exceptions, service-bus-quotas. These have the conditions that belong to no other topic.

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var refusalsCases = Cases{
	"wrong_key":       refusalsWrongKey,
	"to_dead_letters": refusalsToDeadLetters,
	"long_property":   refusalsLongProperty,
}

// A client with a wrong key has no access to any entity.
func refusalsWrongKey(bus *Bus) {
	right := bus.connectionString()
	stranger := bus.tryingOnce(strings.Replace(right, "SharedAccessKey=", "SharedAccessKey=not", 1))
	expectCode(azservicebus.CodeUnauthorizedAccess, stranger.trySend("orders", text("forged")))
	expectCode(azservicebus.CodeUnauthorizedAccess, stranger.receiver("orders").tryReceive())
	check(stranger.Close(soon()))
}

// No client sends to a dead-letter queue.
func refusalsToDeadLetters(bus *Bus) {
	expectCondition(amqp.ErrCondNotAllowed, bus.trySend("orders/$DeadLetterQueue", text("bad")))
}

// A property of more than 32 KB is an internal error of the service, which is retryable.
func refusalsLongProperty(bus *Bus) {
	busOnce := bus.tryingOnce(bus.connectionString())
	message := text("wide")
	message.ApplicationProperties = Values{"wide": strings.Repeat("w", 40_000)}
	err := busOnce.trySend("orders", message)
	expectCode(azservicebus.CodeConnectionLost, err)
	expectErrorText(string(amqp.ErrCondInternalError), err)
	check(busOnce.Close(soon()))
	bus.expectCounts("orders", Counts{"active": 0})
}
