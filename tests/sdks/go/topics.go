package main

// Topics: subscriptions receive the messages that their rules match.
//
// Source: service-bus-queues-topics-subscriptions, topic-filters, service-bus-auto-forwarding, duplicate-detection,
// service-bus-dead-letter-queues. The topic prices has the subscriptions all, cheap (price < 10) and eu (subject and
// region are equal); alarms has marked, which has two rules without an action and one with; jobs has limited, of two
// deliveries; calls finds duplicates and has to-orders and complaints, which forward; the rules of checks can fail.

import (
	"fmt"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var topicsCases = Cases{
	"fans_out":           topicsFansOut,
	"filtered":           topicsFiltered,
	"actions":            topicsActions,
	"settled":            topicsSettled,
	"dead_letters":       topicsDeadLetters,
	"scheduled":          topicsScheduled,
	"expires":            topicsExpires,
	"expires_by_default": topicsExpiresByDefault,
	"evaluation_errors":  topicsEvaluationErrors,
	"forwards":           topicsForwards,
	"duplicates":         topicsDuplicates,
	"addresses":          topicsAddresses,
	"wrong_direction":    topicsWrongDirection,
	"not_found":          topicsNotFound,
}

// Every subscription that matches a message has its own copy, with its own sequence number.
func topicsFansOut(bus *Bus) {
	second := price("b", 8)
	second.MessageID, second.CorrelationID, second.Subject = pointer("p-17"), pointer("c"), pointer("changed")
	bus.send("prices", price("a", 12), second)
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 2})
	bus.expectCounts("prices/Subscriptions/cheap", Counts{"active": 1})
	bus.expectCounts("prices/Subscriptions/eu", Counts{"active": 0})
	for subscription, count := range map[string]int{"all": 2, "cheap": 1} {
		receiver := bus.subscriber("prices", subscription)
		messages := receiver.receive(count)
		message := messages[count-1]
		expect("body", body(message), "b")
		expect("message id", message.MessageID, "p-17")
		expect("correlation id", *message.CorrelationID, "c")
		expect("subject", *message.Subject, "changed")
		expect("application properties", message.ApplicationProperties, Values{"price": 8.0})
		expect("deliveries", deliveries(message), uint32(1))
		expect("sequence number", number(message), int64(count))
		expect("number in the topic", *message.EnqueuedSequenceNumber, int64(2))
		receiver.complete(messages...)
		receiver.receiveNothing()
	}
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 0, "locked": 0})
}

// The messages of a batch are matched separately; values are compared by type, texts by case.
func topicsFiltered(bus *Bus) {
	bus.sender("prices").sendBatch(
		priced("text", Values{"price": "5"}, ""),
		price("float", 9.5),
		text("none"),
		priced("eu", Values{"price": 20, "region": "eu"}, "changed"),
		priced("EU", Values{"price": 20, "region": "EU"}, "changed"),
		priced("new", Values{"price": 10, "region": "eu"}, "new"),
	)
	for subscription, expected := range map[string][]string{
		"all":   {"text", "float", "none", "eu", "EU", "new"},
		"cheap": {"float"},
		"eu":    {"eu"},
	} {
		receiver := bus.subscriberWith("prices", subscription, destructive())
		expect("received from "+subscription, bodies(receiver.receive(len(expected))), expected)
		receiver.receiveNothing()
	}
}

// Rules without an action create one copy together; one with an action creates another, changed copy.
func topicsActions(bus *Bus) {
	fire := priced("fire", Values{"level": int64(2), "secret": "s", "kept": "k"}, "new")
	bus.send("alarms", fire, priced("smoke", Values{"level": int64(1)}, ""))
	receiver := bus.subscriber("alarms", "marked")
	messages := receiver.receive(3)
	copies := mapped(messages, func(message *Received) string {
		subject := "no subject"
		if message.Subject != nil {
			subject = *message.Subject
		}
		return fmt.Sprint(body(message), " ", subject, " ", message.ApplicationProperties)
	})
	slices.Sort(copies)
	expect("copies", copies, []string{
		"fire new map[kept:k level:2 secret:s]",
		"fire raised map[RuleName:raised kept:k level:3 seen:true]",
		"smoke no subject map[level:1]",
	})
	receiver.complete(messages...)
}

// A subscription's messages are settled like a queue's, independently of other copies.
func topicsSettled(bus *Bus) {
	bus.send("prices", price("a", 1), price("b", 2), price("c", 3))
	receiver := bus.subscriber("prices", "all")
	messages := receiver.receive(3)
	check(receiver.renew(messages[0]))
	receiver.complete(messages[0])
	receiver.deferMessages(messages[1])
	receiver.abandon(messages[2])
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 2, "deferred": 1, "locked": 0})
	again := receiver.one()
	expect("abandoned", body(again), "c")
	expect("deliveries", deliveries(again), uint32(2))
	receiver.complete(again)
	peeked := receiver.peek(10)
	expect("peeked", bodies(peeked), []string{"b"})
	expect("state", peeked[0].State, azservicebus.MessageStateDeferred)
	receiver.complete(receiver.deferred(number(messages[1]))...)
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 0, "deferred": 0, "locked": 0})
	bus.expectCounts("prices/Subscriptions/cheap", Counts{"active": 3})
}

// Every subscription has a dead-letter queue, for rejected messages, the delivery limit and expired locks.
func topicsDeadLetters(bus *Bus) {
	bus.send("jobs", texts("bad", "poison", "stuck")...)
	receiver := bus.subscriber("jobs", "limited")
	messages := receiver.receive(3)
	receiver.deadLetter(messages[0], "Rejected", "no total")
	receiver.abandon(messages[1])
	receiver.abandon(receiver.one())
	bus.advance(61)
	stuck := receiver.one()
	expect("delivered again", body(stuck), "stuck")
	expect("deliveries", deliveries(stuck), uint32(2))
	bus.advance(61)
	receiver.receiveNothing()
	bus.expectCounts("jobs/Subscriptions/limited", Counts{"active": 0, "dead_letter": 3})
	deadLetters := subscriberOfDeadLetters(bus, "jobs", "limited")
	dead := deadLetters.receive(3)
	expect("bodies", bodies(dead), []string{"bad", "poison", "stuck"})
	reasons := []string{"Rejected", "MaxDeliveryCountExceeded", "MaxDeliveryCountExceeded"}
	expect("reasons", mapped(dead, reason), reasons)
	expect("description", *dead[0].DeadLetterErrorDescription, "no total")
	deadLetters.complete(dead...)
	bus.expectCounts("jobs/Subscriptions/limited", Counts{"dead_letter": 0})
}

// A topic keeps scheduled messages; rules evaluate them when they are due, and cancelled ones never.
func topicsScheduled(bus *Bus) {
	at := later(300)
	first := price("annotated", 1)
	first.ScheduledEnqueueTime = &at
	sender := bus.sender("prices")
	sender.send(first)
	numbers := sender.schedule(at, price("asked", 20), price("cancelled", 2))
	check(sender.cancel(numbers[1]))
	expectCode(azservicebus.CodeNotFound, sender.cancel(numbers[1]))
	bus.expectCounts("prices", Counts{"scheduled": 2})
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 0, "scheduled": 0})
	bus.advance(301)
	bus.expectCounts("prices", Counts{"scheduled": 0})
	for subscription, expected := range map[string][]string{"all": {"annotated", "asked"}, "cheap": {"annotated"}} {
		receiver := bus.subscriber("prices", subscription)
		messages := receiver.receive(len(expected))
		expect("received from "+subscription, bodies(messages), expected)
		expect("state", messages[0].State, azservicebus.MessageStateScheduled)
		receiver.complete(messages...)
	}
}

// The time to live applies in every subscription separately.
func topicsExpires(bus *Bus) {
	old := price("old", 1)
	old.TimeToLive = pointer(30 * time.Second)
	bus.send("prices", old)
	receiver := bus.subscriber("prices", "all")
	receiver.complete(receiver.one())
	bus.advance(31)
	bus.subscriber("prices", "cheap").receiveNothing()
	bus.expectCounts("prices/Subscriptions/cheap", Counts{"active": 0, "dead_letter": 0})
}

// A subscription's own time to live applies, and its dead-lettered messages have that reason.
func topicsExpiresByDefault(bus *Bus) {
	bus.send("checks", text("old"))
	bus.advance(301)
	deadLetters := subscriberOfDeadLetters(bus, "checks", "fleeting")
	message := deadLetters.one()
	expect("reason", reason(message), expired)
	deadLetters.complete(message)
}

// A message whose filter fails is dead-lettered by a subscription configured so; no other subscription gets it.
func topicsEvaluationErrors(bus *Bus) {
	bus.send("checks", priced("0", Values{"parts": int64(0)}, ""), priced("5", Values{"parts": int64(5)}, ""))
	for _, subscription := range []string{"strict", "lenient"} {
		receiver := bus.subscriber("checks", subscription)
		message := receiver.one()
		expect("body", body(message), "5")
		receiver.complete(message)
		receiver.receiveNothing()
	}
	bus.expectCounts("checks/Subscriptions/lenient", Counts{"dead_letter": 0})
	deadLetters := subscriberOfDeadLetters(bus, "checks", "strict")
	message := deadLetters.one()
	expect("body", body(message), "0")
	expect("reason", reason(message), "FilterException")
	deadLetters.complete(message)
}

// A subscription forwards like a queue: messages and dead-lettered messages to different queues.
func topicsForwards(bus *Bus) {
	sent := identified("call", "c-1")
	sent.ApplicationProperties = Values{"n": int64(1)}
	bus.send("calls", sent)
	orders := bus.receiver("orders")
	call := orders.one()
	expect("body", body(call), "call")
	expect("message id", call.MessageID, "c-1")
	expect("application properties", call.ApplicationProperties, Values{"n": int64(1)})
	expect("source of a message that is not a dead letter", call.DeadLetterSource, (*string)(nil))
	orders.complete(call)
	complaints := bus.subscriber("calls", "complaints")
	complaints.abandon(complaints.one())
	failures := bus.receiver("failures")
	failure := failures.one()
	expect("source", *failure.DeadLetterSource, "calls/Subscriptions/complaints")
	expect("reason", reason(failure), "MaxDeliveryCountExceeded")
	failures.complete(failure)
	expectCondition(amqp.ErrCondNotAllowed, bus.subscriber("calls", "to-orders").tryReceive())
}

// A topic drops a duplicate message for all its subscriptions.
func topicsDuplicates(bus *Bus) {
	bus.send("calls", identified("first", "c-1"), identified("again", "c-1"))
	bus.advance(301)
	bus.send("calls", identified("late", "c-1"))
	receiver := bus.subscriber("calls", "complaints")
	messages := receiver.receive(2)
	expect("bodies", bodies(messages), []string{"first", "late"})
	receiver.complete(messages...)
	receiver.receiveNothing()
}

// Names are case-insensitive.
func topicsAddresses(bus *Bus) {
	bus.send("PRICES", price("a", 1))
	receiver := bus.receiver("Prices/subscriptions/ALL")
	receiver.complete(receiver.one())
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 0})
}

// Clients cannot send to a subscription or receive from a topic.
func topicsWrongDirection(bus *Bus) {
	expectCondition(amqp.ErrCondNotAllowed, bus.trySend("prices/Subscriptions/all", text("lost")))
	expectCondition(amqp.ErrCondNotAllowed, bus.receiver("prices").tryReceive())
	expectCondition(amqp.ErrCondNotAllowed, bus.deadLetters("prices").tryReceive())
	bus.expectCounts("prices/Subscriptions/all", Counts{"active": 0})
}

// A topic or subscription that does not exist, and a subscription of a queue.
func topicsNotFound(bus *Bus) {
	expectMissing(bus.trySend("missing", text("lost")))
	for _, path := range [][2]string{{"missing", "all"}, {"prices", "missing"}, {"orders", "all"}} {
		expectMissing(bus.subscriber(path[0], path[1]).tryReceive())
		_, err := bus.subscriber(path[0], path[1]).PeekMessages(within(promptly), 1, nil)
		expectMissing(err)
	}
}

// price is a message with a price.
func price(body string, value float64) *Message { return priced(body, Values{"price": value}, "") }

// priced is a message with application properties, and perhaps a subject.
func priced(body string, properties Values, subject string) *Message {
	message := &Message{Body: []byte(body), ApplicationProperties: properties}
	if subject != "" {
		message.Subject = &subject
	}
	return message
}

func subscriberOfDeadLetters(bus *Bus, topic, subscription string) Receiver {
	options := &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}
	return bus.subscriberWith(topic, subscription, options)
}
