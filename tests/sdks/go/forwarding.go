package main

// Auto-forwarding of messages and dead-lettered messages to another queue, at most four times (D3).
//
// Source: service-bus-auto-forwarding, service-bus-dead-letter-queues. The queue inbox forwards to orders, hop1 over the
// others to hop6, and complaints forwards its dead letters to orders.

import (
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var forwardingCases = Cases{
	"chain":             forwardingChain,
	"dead_letters":      forwardingDeadLetters,
	"hops":              forwardingHops,
	"target_deleted":    forwardingTargetDeleted,
	"target_disabled":   forwardingTargetDisabled,
	"target_full":       forwardingTargetFull,
	"not_received_from": forwardingNotReceivedFrom,
}

// A message is forwarded unchanged from queue to queue, with a new sequence number in each.
func forwardingChain(bus *Bus) {
	bus.send("orders", text("direct"))
	sent := identified("over", "o-17")
	sent.Subject, sent.ApplicationProperties = pointer("placed"), Values{"total": int64(3)}
	bus.send("inbox", sent)
	bus.expectCounts("inbox", Counts{"active": 0, "transfer": 0})
	receiver := bus.receiver("orders")
	messages := receiver.receive(2)
	over := messages[1]
	expect("body", body(over), "over")
	expect("message id", over.MessageID, "o-17")
	expect("subject", *over.Subject, "placed")
	expect("application properties", over.ApplicationProperties, Values{"total": int64(3)})
	expect("sequence number", number(over), int64(2))
	expect("number where it was sent", *over.EnqueuedSequenceNumber, int64(1))
	expect("deliveries", deliveries(over), uint32(1))
	receiver.complete(messages...)
}

// A forwarded dead-lettered message keeps its reason and its dead-letter source.
func forwardingDeadLetters(bus *Bus) {
	bus.send("complaints", text("bad"))
	complaints := bus.receiver("complaints")
	fresh := complaints.one()
	expect("source of a message that is none", fresh.DeadLetterSource, (*string)(nil))
	complaints.abandon(fresh)
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("source", *message.DeadLetterSource, "complaints")
	expect("reason", reason(message), "MaxDeliveryCountExceeded")
	receiver.complete(message)
	bus.expectCounts("complaints", Counts{"active": 0, "dead_letter": 0})
}

// Four forwards are allowed: the fifth fails at its source.
func forwardingHops(bus *Bus) {
	bus.send("hop2", text("four"))
	receiver := bus.receiver("hop6")
	message := receiver.one()
	expect("body", body(message), "four")
	receiver.complete(message)
	bus.send("hop1", text("five"))
	failed := expectNotForwarded(bus, "hop5", "five", "MaxTransferHopCountExceeded")
	description := "The maximum number of allowed hops when forwarding between queues. Value is set to 4."
	expect("description", *failed.DeadLetterErrorDescription, description)
	receiver.receiveNothing()
}

// A message whose target does not exist is moved to the transfer dead-letter queue of its source.
func forwardingTargetDeleted(bus *Bus) {
	bus.delete("orders")
	bus.send("inbox", text("lost"))
	expectNotForwarded(bus, "inbox", "lost", "MessagingEntityNotFoundException")
}

// So is a message that its target rejects.
func forwardingTargetDisabled(bus *Bus) {
	bus.configure("orders", Values{"Status": "SendDisabled"})
	bus.send("inbox", text("early"))
	expectNotForwarded(bus, "inbox", "early", "MessagingEntityDisabledException")
}

// So is a message for which its target has no space.
func forwardingTargetFull(bus *Bus) {
	large := strings.Repeat("x", 200_000)
	bus.send("tiny", texts(large, large, large, large, large)...)
	bus.send("to-tiny", text(large))
	bus.expectCounts("tiny", Counts{"active": 5})
	expectNotForwarded(bus, "to-tiny", large, "QuotaExceededException")
}

// A queue that forwards cannot be received from; its dead-letter queues can.
func forwardingNotReceivedFrom(bus *Bus) {
	expectCondition(amqp.ErrCondNotAllowed, bus.receiver("inbox").tryReceive())
	bus.deadLetters("inbox").receiveNothing()
}

// expectNotForwarded receives the only message that a queue could not forward.
func expectNotForwarded(bus *Bus, queue, expected, why string) *Received {
	bus.expectCounts(queue, Counts{"active": 0, "dead_letter": 0, "transfer_dead_letter": 1})
	options := &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueTransfer}
	receiver := bus.receiverWith(queue, options)
	message := receiver.one()
	expect("body", body(message), expected)
	expect("reason", reason(message), why)
	receiver.complete(message)
	bus.expectCounts(queue, Counts{"transfer_dead_letter": 0})
	return message
}
