package main

// Session locks: renewed in time, or lost with the locks of received messages.
//
// Source: message-sessions, and D17 for a changed queue.

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var sessionLocksCases = Cases{
	"renews":                sessionLocksRenews,
	"loses_lock":            sessionLocksLosesLock,
	"loses_lock_on_renewal": sessionLocksLosesLockOnRenewal,
	"passes_on":             sessionLocksPassesOn,
	"expires_to_the_limit":  sessionLocksExpiresToTheLimit,
	"changed":               sessionLocksChanged,
}

// Renewing a session's lock in time also extends the locks of its messages.
func sessionLocksRenews(bus *Bus) {
	bus.send("carts", cart("1", "slow"))
	session := bus.session("carts", "1")
	message := session.one()
	for range 2 {
		bus.advance(40)
		check(session.sdk.RenewSessionLock(soon(), nil))
		expectFreshLock(session.sdk.LockedUntil())
	}
	bus.advance(40)
	session.complete(message)
	bus.expectCounts("carts", Counts{"active": 0, "locked": 0})
}

// Settling after the lock has expired fails, and the message is redelivered and counted.
func sessionLocksLosesLock(bus *Bus) {
	bus.send("carts", cart("1", "late"))
	for delivery := range uint32(3) {
		session := bus.session("carts", "1")
		message := session.one()
		expect("deliveries", deliveries(message), delivery+1)
		bus.advance(61)
		expectLost([]func(context.Context) error{
			func(ctx context.Context) error { return session.CompleteMessage(ctx, message, nil) },
			func(ctx context.Context) error { return session.AbandonMessage(ctx, message, nil) },
			func(ctx context.Context) error { return session.DeadLetterMessage(ctx, message, nil) },
		}[delivery])
		// Closing also returns the error that ended the link.
		_ = session.Close(soon())
	}
	bus.expectCounts("carts", Counts{"active": 1, "locked": 0})
}

// After the lock's end this SDK accepts the session anew, unasked, for a renewal as for a receive, unless it is taken.
func sessionLocksLosesLockOnRenewal(bus *Bus) {
	session := bus.session("carts", "1")
	bus.advance(61)
	check(session.sdk.RenewSessionLock(soon(), nil))
	expectFreshLock(session.sdk.LockedUntil())
	bus.advance(61)
	bus.connect(bus.connectionString(), azservicebus.RetryOptions{}).session("carts", "1")
	expectTaken(session.sdk.RenewSessionLock(soon(), nil))
	expectTaken(session.tryReceive())
}

// A waiting receiver gets a session whose lock expires, although its receiver is still attached.
func sessionLocksPassesOn(bus *Bus) {
	bus.send("carts", cart("1", "stuck"))
	bus.session("carts", "1").one()
	opening := start(func() Session { return bus.nextSession("carts") })
	expectWaiting(opening)
	bus.advance(61)
	session := await("a session", opening)
	message := session.one()
	expect("body", body(message), "stuck")
	expect("deliveries", deliveries(message), uint32(2))
	session.complete(message)
}

// Expired locks count as deliveries, as abandons do, until the message is dead-lettered.
func sessionLocksExpiresToTheLimit(bus *Bus) {
	bus.send("limited-carts", cart("1", "forgotten"), cart("1", "unseen"))
	for delivery := range uint32(2) {
		message := bus.session("limited-carts", "1").one()
		expect("body", body(message), "forgotten")
		expect("deliveries", deliveries(message), delivery+1)
		bus.advance(61)
	}
	deadLetters := bus.deadLetters("limited-carts")
	dead := deadLetters.one()
	expect("reason", reason(dead), "MaxDeliveryCountExceeded")
	expect("deliveries", deliveries(dead), uint32(3))
	deadLetters.complete(dead)
	session := bus.session("limited-carts", "1")
	message := session.one()
	expect("body", body(message), "unseen")
	expect("deliveries", deliveries(message), uint32(1))
	session.complete(message)
}

// A changed queue loses the locks of its sessions (D17).
func sessionLocksChanged(bus *Bus) {
	bus.send("carts", cart("1", "held"))
	holder := bus.session("carts", "1")
	held := holder.one()
	bus.configure("carts", Values{"MaxDeliveryCount": 5})
	expectLost(func(ctx context.Context) error { return holder.CompleteMessage(ctx, held, nil) })
	_ = holder.Close(soon())
	session := bus.nextSession("carts")
	message := session.one()
	expect("deliveries", deliveries(message), uint32(2))
	session.complete(message)
}

// expectLost asserts that a settlement is refused because the session's lock is lost. The SDK treats that as a lost
// link: it would accept the session again after some seconds, which no option sets, and settle again, so its error
// would take most of a minute. Until then only its log shows it.
func expectLost(settle func(context.Context) error) {
	before := refusals.Load()
	expect("whether it would continue", errors.Is(settle(within(time.Second)), context.DeadlineExceeded), true)
	expect("whether it was refused", refusals.Load() > before, true)
}

// refusals counts the lost sessions in the SDK's log.
var refusals atomic.Int64

// The log is listened to from the beginning: the SDK reads the listener without a lock, whenever any case of this process
// logs something.
func init() {
	log.SetListener(func(_ log.Event, text string) {
		if strings.Contains(text, "The session lock has expired on the MessageSession.") {
			refusals.Add(1)
		}
	})
}
