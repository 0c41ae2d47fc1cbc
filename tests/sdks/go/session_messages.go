package main

// Messages of sessions: their strict order, and their state when a receiver does not complete them.
//
// Source: message-sessions, message-deferral, message-browsing, service-bus-dead-letter-queues.

import (
	"time"

	"github.com/Azure/go-amqp"
)

var sessionMessagesCases = Cases{
	"in_order":                   sessionMessagesInOrder,
	"deferred_alone":             sessionMessagesDeferredAlone,
	"peeked":                     sessionMessagesPeeked,
	"dead_lettered":              sessionMessagesDeadLettered,
	"abandons_to_the_limit":      sessionMessagesAbandonsToTheLimit,
	"without_id":                 sessionMessagesWithoutID,
	"without_id_at_subscription": sessionMessagesWithoutIDAtSubscription,
	"forwarded":                  sessionMessagesForwarded,
	"scheduled":                  sessionMessagesScheduled,
	"expires":                    sessionMessagesExpires,
	"replies":                    sessionMessagesReplies,
}

// An abandoned message is the next one again, before the later messages of its session.
func sessionMessagesInOrder(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("1", "b"), cart("1", "c"), cart("1", "d"))
	session := bus.session("carts", "1")
	session.abandon(session.one())
	messages := session.receive(3)
	expect("bodies", bodies(messages), []string{"a", "b", "c"})
	session.abandon(messages[2])
	session.complete(messages[1])
	session.abandon(messages[0])
	messages = session.receive(3)
	expect("bodies", bodies(messages), []string{"a", "c", "d"})
	expect("deliveries", mapped(messages, deliveries), []uint32{3, 2, 1})
	session.complete(messages...)
}

// A session that has only deferred messages is not the next available session.
func sessionMessagesDeferredAlone(bus *Bus) {
	bus.send("carts", cart("1", "a"))
	session := bus.session("carts", "1")
	session.deferMessages(session.one())
	session.close()
	opening := start(func() Session { return bus.nextSession("carts") })
	expectWaiting(opening)
	bus.send("carts", cart("2", "b"))
	expect("session id", await("a session", opening).sdk.SessionID(), "2")
}

// A session receiver of this SDK peeks across all sessions: its request names none.
func sessionMessagesPeeked(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
	session := bus.session("carts", "1")
	peeked := session.peek(10)
	expect("bodies", bodies(peeked), []string{"a", "b", "c"})
	expect("session ids", mapped(peeked, sessionID), []string{"1", "2", "1"})
	expect("from the second on", bodies(session.peek(10, 2)), []string{"b", "c"})
	bus.expectCounts("carts", Counts{"active": 3, "locked": 0})
}

// Dead-lettered messages are received without a session, and keep its id.
func sessionMessagesDeadLettered(bus *Bus) {
	bus.send("carts", cart("1", "bad"), cart("2", "worse"))
	for _, id := range []string{"1", "2"} {
		session := bus.session("carts", id)
		session.deadLetter(session.one(), "Rejected", "no total")
	}
	deadLetters := bus.deadLetters("carts")
	messages := deadLetters.receive(2)
	expect("bodies", bodies(messages), []string{"bad", "worse"})
	expect("session ids", mapped(messages, sessionID), []string{"1", "2"})
	expect("reasons", mapped(messages, reason), []string{"Rejected", "Rejected"})
	check(deadLetters.renew(messages[0]))
	deadLetters.complete(messages...)
	bus.expectCounts("carts", Counts{"active": 0, "dead_letter": 0})
}

// After its last delivery a message leaves the session to the next messages.
func sessionMessagesAbandonsToTheLimit(bus *Bus) {
	bus.send("limited-carts", cart("1", "poison"), cart("1", "good"))
	session := bus.session("limited-carts", "1")
	for delivery := range uint32(2) {
		message := session.one()
		expect("body", body(message), "poison")
		expect("deliveries", deliveries(message), delivery+1)
		session.abandon(message)
	}
	good := session.one()
	expect("body", body(good), "good")
	session.complete(good)
	deadLetters := bus.deadLetters("limited-carts")
	dead := deadLetters.one()
	expect("reason", reason(dead), "MaxDeliveryCountExceeded")
	deadLetters.complete(dead)
}

// A session queue rejects a message without a session id, and a batch that contains one.
func sessionMessagesWithoutID(bus *Bus) {
	sender := bus.sender("carts")
	description := "The SessionId was not set on a message, and it cannot be sent to the entity."
	for _, err := range []error{sender.try(text("lost")), sender.tryBatch(cart("1", "with"), text("without"))} {
		expectCondition(amqp.ErrCondNotAllowed, err)
		expectErrorText(description, err)
	}
	// The SDK treats other errors as a broken connection, and retries.
	once := bus.tryingOnce(bus.connectionString()).sender("carts")
	_, err := once.ScheduleMessages(soon(), texts("later"), later(60), nil)
	expectErrorText(description, err)
	bus.expectCounts("carts", Counts{"active": 0, "scheduled": 0, "dead_letter": 0})
}

// A topic accepts a message without a session id, and a session subscription dead-letters it.
func sessionMessagesWithoutIDAtSubscription(bus *Bus) {
	bus.send("steps", text("stray"), cart("1", "a"))
	bus.expectCounts("steps/Subscriptions/all", Counts{"active": 2, "dead_letter": 0})
	bus.expectCounts("steps/Subscriptions/by-cart", Counts{"active": 1, "dead_letter": 1})
	expectDeadWithoutSessionID(subscriberOfDeadLetters(bus, "steps", "by-cart"))
}

// A forwarded message joins its session, or is dead-lettered if it has none.
func sessionMessagesForwarded(bus *Bus) {
	bus.send("inbox", cart("1", "a"), text("stray"))
	session := bus.session("carts", "1")
	message := session.one()
	expect("body", body(message), "a")
	session.complete(message)
	expectDeadWithoutSessionID(bus.deadLetters("carts"))
}

// A scheduled message joins its session when it becomes active.
func sessionMessagesScheduled(bus *Bus) {
	sender := bus.sender("carts")
	sender.schedule(later(300), cart("1", "asked"), cart("2", "another's"))
	sent := cart("1", "annotated")
	sent.ScheduledEnqueueTime = pointer(later(200))
	sender.send(sent)
	bus.expectCounts("carts", Counts{"active": 0, "scheduled": 3})
	early := bus.session("carts", "1")
	early.receiveNothing()
	early.close()
	bus.advance(301)
	session := bus.nextSession("carts")
	expect("session id", session.sdk.SessionID(), "1")
	messages := session.receive(2)
	expect("bodies", bodies(messages), []string{"annotated", "asked"})
	session.complete(messages...)
	bus.expectCounts("carts", Counts{"active": 1, "scheduled": 0})
}

// A message of a session expires like any other, and the following ones are delivered next.
func sessionMessagesExpires(bus *Bus) {
	old := cart("1", "old")
	old.TimeToLive = pointer(30 * time.Second)
	bus.send("carts", old, cart("1", "new"))
	bus.advance(31)
	session := bus.session("carts", "1")
	message := session.one()
	expect("body", body(message), "new")
	session.complete(message)
	deadLetters := bus.deadLetters("carts")
	dead := deadLetters.one()
	expect("reason", reason(dead), expired)
	deadLetters.complete(dead)
}

// A reply arrives in the session that the request specifies.
func sessionMessagesReplies(bus *Bus) {
	ask := cart("requests", "ask")
	ask.ReplyTo, ask.ReplyToSessionID = pointer("carts"), pointer("answers-7")
	bus.send("carts", ask)
	requests := bus.session("carts", "requests")
	request := requests.one()
	bus.send(*request.ReplyTo, cart(*request.ReplyToSessionID, "answer"))
	requests.complete(request)
	answers := bus.session("carts", "answers-7")
	answer := answers.one()
	expect("body", body(answer), "answer")
	expect("session to reply to", answer.ReplyToSessionID, (*string)(nil))
	answers.complete(answer)
}

// expectDeadWithoutSessionID receives the only dead-lettered message, which has no session id.
func expectDeadWithoutSessionID(receiver Receiver) {
	message := receiver.one()
	expect("body", body(message), "stray")
	expect("session id", message.SessionID, (*string)(nil))
	expect("reason", reason(message), "Session ID is null.")
	description := "Session enabled entity doesn't allow a message whose session identifier is null."
	expect("description", *message.DeadLetterErrorDescription, description)
	receiver.complete(message)
}
