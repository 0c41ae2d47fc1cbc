package main

// Limits: a message that is too large, a queue that is full, a batch that is rejected as a whole.
//
// Source: service-bus-quotas. The queue tiny holds a mebibyte, five messages of 200,000 bytes.

import (
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var limitsCases = Cases{
	"too_large":               limitsTooLarge,
	"full":                    limitsFull,
	"full_of_dead_letters":    limitsFullOfDeadLetters,
	"batch_is_all_or_nothing": limitsBatchIsAllOrNothing,
	"batch_fills_up":          limitsBatchFillsUp,
}

// The SDK rejects a message over the link's limit; the link accepts the next one.
func limitsTooLarge(bus *Bus) {
	sender := bus.sender("orders")
	sender.send(text("small"))
	expectTooLarge(sender.try(sized(300_000)))
	sender.send(text("small"))
	bus.expectCounts("orders", Counts{"active": 2})
}

// A full queue rejects messages that do not fit until there is space again.
func limitsFull(bus *Bus) {
	sender := bus.sender("tiny")
	for range 5 {
		sender.send(sized(200_000))
	}
	expectFull(sender.try(sized(200_000)))
	sender.send(text("small enough"))
	receiver := bus.receiver("tiny")
	receiver.complete(receiver.one())
	sender.send(sized(200_000))
	bus.expectCounts("tiny", Counts{"active": 6})
}

// Dead-lettered messages take space, too.
func limitsFullOfDeadLetters(bus *Bus) {
	sender, receiver := bus.sender("tiny"), bus.receiver("tiny")
	for range 5 {
		sender.send(sized(200_000))
		receiver.deadLetter(receiver.one(), "", "")
	}
	expectFull(sender.try(sized(200_000)))
	bus.expectCounts("tiny", Counts{"active": 0, "dead_letter": 5})
}

// A batch of which only a part would fit is rejected as a whole.
func limitsBatchIsAllOrNothing(bus *Bus) {
	sender := bus.sender("tiny")
	for range 4 {
		sender.send(sized(200_000))
	}
	half := sized(100_000)
	sender.send(half)
	expectFull(sender.tryBatch(half, half))
	bus.expectCounts("tiny", Counts{"active": 5})
	sender.sendBatch(half)
	bus.expectCounts("tiny", Counts{"active": 6})
}

// A batch accepts messages up to the link's limit, and can be sent.
func limitsBatchFillsUp(bus *Bus) {
	sender := bus.sender("orders")
	batch := must(sender.NewMessageBatch(soon(), nil))
	var err error
	for err == nil {
		err = batch.AddMessage(sized(50_000), nil)
	}
	expectTooLarge(err)
	expect("messages of 50,000 bytes in a batch", batch.NumMessages(), int32(5))
	check(sender.SendMessageBatch(soon(), batch, nil))
	bus.expectCounts("orders", Counts{"active": 5})
}

func sized(bytes int) *Message { return &Message{Body: make([]byte, bytes)} }

func expectTooLarge(err error) {
	expect("whether it is too large", errors.Is(err, azservicebus.ErrMessageTooLarge), true)
}

func expectFull(err error) { expectCondition(amqp.ErrCondResourceLimitExceeded, err) }
