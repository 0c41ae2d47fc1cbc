package main

// Locks: renewed in time, or lost with the SDK's own error.

import "github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

var locksCases = Cases{
	"renews":                locksRenews,
	"loses_lock":            locksLosesLock,
	"loses_lock_on_renewal": locksLosesLockOnRenewal,
	"expires_to_the_limit":  locksExpiresToTheLimit,
}

// A lock renewed in time lasts longer than its first minute.
func locksRenews(bus *Bus) {
	bus.send("orders", text("slow"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	for range 2 {
		bus.advance(40)
		check(receiver.renew(message))
		expectFreshLock(*message.LockedUntil)
	}
	bus.advance(40)
	receiver.complete(message)
}

// Settling after the lock has expired returns the SDK's error, and the message is redelivered and counted.
func locksLosesLock(bus *Bus) {
	bus.send("orders", text("late"))
	receiver := bus.receiver("orders")
	for _, settle := range []func(*Received) error{
		func(message *Received) error { return receiver.CompleteMessage(soon(), message, nil) },
		func(message *Received) error { return receiver.AbandonMessage(soon(), message, nil) },
		func(message *Received) error { return receiver.DeadLetterMessage(soon(), message, nil) },
	} {
		message := receiver.one()
		bus.advance(61)
		expectCode(azservicebus.CodeLockLost, settle(message))
	}
	message := receiver.one()
	expect("body", body(message), "late")
	expect("deliveries", deliveries(message), uint32(4))
	receiver.complete(message)
}

// Renewing after the lock has expired returns the same error.
func locksLosesLockOnRenewal(bus *Bus) {
	bus.send("orders", text("late"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	bus.advance(61)
	expectCode(azservicebus.CodeLockLost, receiver.renew(message))
	again := receiver.one()
	expect("deliveries", deliveries(again), uint32(2))
	receiver.complete(again)
}

// Expired locks count as deliveries, as abandons do, until the message is dead-lettered.
func locksExpiresToTheLimit(bus *Bus) {
	bus.send("limited", text("forgotten"))
	receiver := bus.receiver("limited")
	for delivery := range uint32(3) {
		expect("deliveries", deliveries(receiver.one()), delivery+1)
		bus.advance(61)
	}
	deadLetters := bus.deadLetters("limited")
	message := deadLetters.one()
	expect("reason", reason(message), "MaxDeliveryCountExceeded")
	expect("deliveries", deliveries(message), uint32(4))
	deadLetters.complete(message)
}
