package main

// The premium tier: messages of any size that their queue allows.
//
// Source: service-bus-premium-messaging. The queue large allows ten mebibytes, the others one.

import "bytes"

var premiumCases = Cases{"large_message": premiumLargeMessage, "too_large": premiumTooLarge, "batch": premiumBatch}

// A message of 5 MB arrives unchanged if the queue allows it.
func premiumLargeMessage(bus *Bus) {
	sent := sized(5_000_000)
	for index := range sent.Body {
		sent.Body[index] = byte(index * 7 % 251)
	}
	bus.send("large", sent)
	receiver := bus.receiver("large")
	message := receiver.one()
	expect("whether the body is what was sent", bytes.Equal(message.Body, sent.Body), true)
	receiver.complete(message)
	bus.expectCounts("large", Counts{"active": 0})
}

// Other queues have the tier's default limit of a mebibyte.
func premiumTooLarge(bus *Bus) {
	sender := bus.sender("orders")
	sender.send(sized(1_000_000))
	expectTooLarge(sender.try(sized(1_100_000)))
	sender.send(text("small"))
	bus.expectCounts("orders", Counts{"active": 2})
}

// A batch has a mebibyte at most, also where a single message may have more: the SDK observes the link's limit.
func premiumBatch(bus *Bus) {
	sender := bus.sender("large")
	half := sized(500_000)
	batch := sender.batch(half, half)
	expectTooLarge(batch.AddMessage(half, nil))
	check(sender.SendMessageBatch(soon(), batch, nil))
	bus.expectCounts("large", Counts{"active": 2})
}
