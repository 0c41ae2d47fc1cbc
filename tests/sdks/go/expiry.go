package main

// Expiry, under both settings of D1: when the message expires, or when a receiver is active.

import "time"

const expired = "TTLExpiredException"

var expiryCases = Cases{
	"without_receiver":        expiryWithoutReceiver,
	"dropped":                 expiryDropped,
	"completed_under_lock":    expiryCompletedUnderLock,
	"abandoned_after_expiry":  expiryAbandonedAfterExpiry,
	"lock_ends_after_expiry":  expiryLockEndsAfterExpiry,
	"by_default_time_to_live": expiryByDefaultTimeToLive,
}

// An expired message is dead-lettered at once, or counted until a receiver attaches. A peek of this SDK opens the
// link of one, so that there is none before.
func expiryWithoutReceiver(bus *Bus) {
	bus.send("expiring", shortLived("old"), text("young"))
	bus.advance(31)
	if bus.expiry == "eager" {
		bus.expectCounts("expiring", Counts{"active": 1, "dead_letter": 1})
	} else {
		bus.expectCounts("expiring", Counts{"active": 2, "dead_letter": 0})
	}
	receiver := bus.receiver("expiring")
	message := receiver.one()
	expect("body of what is left", body(message), "young")
	receiver.complete(message)
	bus.expectCounts("expiring", Counts{"active": 0, "dead_letter": 1})
	expectExpired(bus, 1)
}

// If the queue does not dead-letter on expiration, an expired message is removed.
func expiryDropped(bus *Bus) {
	bus.send("orders", shortLived("old"))
	bus.advance(31)
	left := 1
	if bus.expiry == "eager" {
		left = 0
	}
	bus.expectCounts("orders", Counts{"active": left, "dead_letter": 0})
	bus.receiver("orders").receiveNothing()
	bus.expectCounts("orders", Counts{"active": 0, "dead_letter": 0})
}

// A locked message can be completed after it has expired.
func expiryCompletedUnderLock(bus *Bus) {
	bus.send("expiring", shortLived("old"))
	receiver := bus.receiver("expiring")
	message := receiver.one()
	bus.advance(31)
	receiver.complete(message)
	bus.expectCounts("expiring", Counts{"active": 0, "dead_letter": 0})
}

// A message that has expired when it is abandoned is removed at once, under both settings.
func expiryAbandonedAfterExpiry(bus *Bus) {
	bus.send("expiring", shortLived("old"))
	receiver := bus.receiver("expiring")
	message := receiver.one()
	bus.advance(31)
	receiver.abandon(message)
	expectExpired(bus, 2)
}

// A message that has expired when its lock expires is also removed at once.
func expiryLockEndsAfterExpiry(bus *Bus) {
	bus.send("expiring", shortLived("old"))
	bus.receiver("expiring").one()
	bus.advance(61)
	expectExpired(bus, 2)
}

// The queue's time to live applies to messages that have none, and is the maximum for others.
func expiryByDefaultTimeToLive(bus *Bus) {
	long := text("long")
	long.TimeToLive = pointer(24 * time.Hour)
	bus.send("fleeting", text("none"), long)
	receiver := bus.receiver("fleeting")
	for _, message := range receiver.receive(2) {
		expect("time to live", message.ExpiresAt.Sub(*message.EnqueuedTime), 5*time.Minute)
		receiver.abandon(message)
	}
	receiver.close()
	bus.advance(301)
	bus.receiver("fleeting").receiveNothing()
	deadLetters := bus.deadLetters("fleeting")
	dead := deadLetters.receive(2)
	expect("reasons", mapped(dead, reason), []string{expired, expired})
	deadLetters.complete(dead...)
}

// shortLived is a message that expires after half a lock.
func shortLived(body string) *Message {
	return &Message{Body: []byte(body), TimeToLive: pointer(30 * time.Second)}
}

// expectExpired receives the only dead-lettered message of the queue, with the reason of an expired one.
func expectExpired(bus *Bus, delivered uint32) {
	receiver := bus.deadLetters("expiring")
	message := receiver.one()
	expect("body", body(message), "old")
	expect("reason", reason(message), expired)
	expect("description", *message.DeadLetterErrorDescription, "The message expired and was dead lettered.")
	expect("deliveries", deliveries(message), delivered)
	receiver.complete(message)
}
