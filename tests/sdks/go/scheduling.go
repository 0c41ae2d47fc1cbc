package main

// Scheduled messages: scheduled, waiting, active with a new sequence number, or cancelled.
//
// Source: message-sequencing. The client's clock sets the time, to which the namespace's clock is advanced (D20).

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var schedulingCases = Cases{
	"annotated":      schedulingAnnotated,
	"by_request":     schedulingByRequest,
	"past":           schedulingPast,
	"batch":          schedulingBatch,
	"cancelled":      schedulingCancelled,
	"cancel_refused": schedulingCancelRefused,
	"expires":        schedulingExpires,
}

// A message with a scheduled enqueue time waits until then, visible only to peeks, and gets a new number.
func schedulingAnnotated(bus *Bus) {
	at := later(300)
	bus.send("orders", annotated("later", at))
	bus.expectCounts("orders", Counts{"active": 0, "scheduled": 1})
	receiver := bus.receiver("orders")
	receiver.receiveNothing()
	peeked := receiver.peek(10)[0]
	expect("state", peeked.State, azservicebus.MessageStateScheduled)
	expect("sequence number", number(peeked), int64(1))
	expectClose("scheduled time", *peeked.ScheduledEnqueueTime, at)
	bus.advance(240)
	receiver.receiveNothing()
	bus.advance(61)
	message := receiver.one()
	expect("body", body(message), "later")
	// Observed 6.
	expect("state", message.State, azservicebus.MessageStateScheduled)
	expect("sequence number", number(message), int64(2))
	expectClose("enqueued time", *message.EnqueuedTime, later(0))
	receiver.complete(message)
	bus.expectCounts("orders", Counts{"active": 0, "scheduled": 0})
}

// The response to a schedule request has a sequence number for each message, in order.
func schedulingByRequest(bus *Bus) {
	sender := bus.sender("orders")
	expect("sequence numbers", sender.schedule(later(300), texts("a", "b")...), []int64{1, 2})
	expect("another", sender.schedule(later(200), text("c")), []int64{3})
	bus.expectCounts("orders", Counts{"active": 0, "scheduled": 3})
	bus.advance(301)
	receiver := bus.receiver("orders")
	messages := receiver.receive(3)
	expect("messages in the order of their times", bodies(messages), []string{"c", "a", "b"})
	expect("their numbers", mapped(messages, number), []int64{4, 5, 6})
	receiver.complete(messages...)
}

// A message scheduled for a time in the past is active at once.
func schedulingPast(bus *Bus) {
	bus.send("orders", annotated("late", later(-60)))
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("sequence number", number(message), int64(1))
	receiver.complete(message)
}

// A batch may contain scheduled and other messages. The SDK copies the first one's annotations to the envelope, the time
// among them; each message's own count.
func schedulingBatch(bus *Bus) {
	bus.sender("orders").sendBatch(annotated("later", later(60)), text("now"))
	bus.expectCounts("orders", Counts{"active": 1, "scheduled": 1})
	bus.advance(61)
	receiver := bus.receiver("orders")
	messages := receiver.receive(2)
	expect("bodies", bodies(messages), []string{"now", "later"})
	receiver.complete(messages...)
}

// A cancelled message is never delivered; the others are.
func schedulingCancelled(bus *Bus) {
	sender := bus.sender("orders")
	numbers := sender.schedule(later(60), texts("a", "b", "c")...)
	check(sender.cancel(numbers[0]))
	check(sender.cancel(numbers[2]))
	bus.expectCounts("orders", Counts{"active": 0, "scheduled": 1})
	bus.advance(61)
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("body", body(message), "b")
	receiver.complete(message)
	receiver.receiveNothing()
}

// Unknown, cancelled and active messages cannot be cancelled; either all are cancelled or none.
func schedulingCancelRefused(bus *Bus) {
	sender := bus.sender("orders")
	refused := func(numbers ...int64) { expectCode(azservicebus.CodeNotFound, sender.cancel(numbers...)) }
	first := sender.schedule(later(60), text("first"))[0]
	refused(4711)
	refused(first, 4711)
	bus.expectCounts("orders", Counts{"scheduled": 1})
	second := sender.schedule(later(60), text("second"))[0]
	check(sender.cancel(second))
	refused(second)
	bus.advance(61)
	refused(first)
	receiver := bus.receiver("orders")
	message := receiver.one()
	refused(number(message))
	receiver.complete(message)
}

// The time to live starts when the message becomes active: at 5:00, so that it ends at 15:00.
func schedulingExpires(bus *Bus) {
	short := annotated("short", later(300))
	short.TimeToLive = pointer(10 * time.Minute)
	bus.send("expiring", short)
	bus.advance(840)
	bus.expectCounts("expiring", Counts{"active": 1, "scheduled": 0, "dead_letter": 0})
	bus.advance(61)
	left := 1
	if bus.expiry == "eager" {
		left = 0
	}
	bus.expectCounts("expiring", Counts{"active": left, "dead_letter": 1 - left})
	bus.receiver("expiring").receiveNothing()
	deadLetters := bus.deadLetters("expiring")
	message := deadLetters.one()
	expect("reason", reason(message), expired)
	deadLetters.complete(message)
}

func annotated(body string, at time.Time) *Message {
	return &Message{Body: []byte(body), ScheduledEnqueueTime: &at}
}
