package main

// Sessions: accepted by their ids or as the next one, by one receiver at a time.
//
// Source: message-sessions, and D10 for which one is next. The queues carts and limited-carts, of two deliveries, require
// sessions; inbox forwards to carts; steps has the subscriptions by-cart, which requires sessions, and all, which does
// not; orders is plain.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
)

var sessionsCases = Cases{
	"by_id":              sessionsByID,
	"empty":              sessionsEmpty,
	"empty_id":           sessionsEmptyID,
	"next_available":     sessionsNextAvailable,
	"waits_for_next":     sessionsWaitsForNext,
	"times_out":          sessionsTimesOut,
	"cancelled":          sessionsCancelled,
	"taken":              sessionsTaken,
	"closed":             sessionsClosed,
	"side_by_side":       sessionsSideBySide,
	"streams":            sessionsStreams,
	"receive_and_delete": sessionsReceiveAndDelete,
	"subscription":       sessionsSubscription,
	"plain_receiver":     sessionsPlainReceiver,
	"on_plain_queue":     sessionsOnPlainQueue,
	"long_id":            sessionsLongID,
	"disabled":           sessionsDisabled,
}

// A session is accepted by its id, and delivers only its own messages.
func sessionsByID(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
	session := bus.session("carts", "1")
	expect("session id", session.sdk.SessionID(), "1")
	expectFreshLock(session.sdk.LockedUntil())
	messages := session.receive(2)
	expect("bodies", bodies(messages), []string{"a", "c"})
	expect("session ids", mapped(messages, sessionID), []string{"1", "1"})
	bus.expectCounts("carts", Counts{"active": 3, "locked": 2})
	session.complete(messages...)
	session.receiveNothing()
	bus.expectCounts("carts", Counts{"active": 1, "locked": 0})
}

// An empty session is accepted by its id, and delivers messages that arrive later.
func sessionsEmpty(bus *Bus) {
	session := bus.session("carts", "1")
	session.receiveNothing()
	bus.send("carts", cart("2", "another's"), cart("1", "late"))
	message := session.one()
	expect("body", body(message), "late")
	session.complete(message)
}

// The empty session id is a session like any other (observed 14).
func sessionsEmptyID(bus *Bus) {
	bus.send("carts", cart("", "a"))
	session := bus.session("carts", "")
	expect("session id", session.sdk.SessionID(), "")
	session.complete(session.one())
	bus.expectCounts("carts", Counts{"active": 0})
}

// The next available session is the unlocked one whose first message is the oldest.
func sessionsNextAvailable(bus *Bus) {
	bus.send("carts", cart("2", "a"), cart("1", "b"), cart("2", "c"))
	first, second := bus.nextSession("carts"), bus.nextSession("carts")
	for id, session := range map[string]Session{"1": second, "2": first} {
		expect("session id", session.sdk.SessionID(), id)
		expectFreshLock(session.sdk.LockedUntil())
		expected := map[string][]string{"1": {"b"}, "2": {"a", "c"}}[id]
		messages := session.receive(len(expected))
		expect("bodies of session "+id, bodies(messages), expected)
		session.complete(messages...)
	}
	bus.expectCounts("carts", Counts{"active": 0, "locked": 0})
}

// A receiver waits until a session is available.
func sessionsWaitsForNext(bus *Bus) {
	opening := start(func() Session { return bus.nextSession("carts") })
	expectWaiting(opening)
	bus.send("carts", cart("1", "late"))
	session := await("a session", opening)
	expect("session id", session.sdk.SessionID(), "1")
	message := session.one()
	expect("body", body(message), "late")
	session.complete(message)
}

// A receiver that gets no session gets an error after its timeout: by the broker, or by its own
// context, which ends a moment later.
func sessionsTimesOut(bus *Bus) {
	bus.send("carts", cart("1", "taken"))
	bus.session("carts", "1")
	begin := time.Now()
	_, err := bus.AcceptNextSessionForQueue(within(2*time.Second), "carts", nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		expectCode(azservicebus.CodeTimeout, err)
		expectErrorText("The operation did not complete within the allotted timeout of 00:00:0", err)
	}
	if waited := time.Since(begin); waited < 1800*time.Millisecond || waited > promptly {
		panic(fmt.Errorf("the error arrived after %s instead of two seconds", waited))
	}
}

// A receiver that stops waiting for a session leaves it to the next receiver.
func sessionsCancelled(bus *Bus) {
	ctx, cancel := context.WithCancel(soon())
	opening := start(func() error {
		_, err := bus.AcceptNextSessionForQueue(ctx, "carts", nil)
		return err
	})
	expectWaiting(opening)
	cancel()
	expect("whether it is cancelled", errors.Is(await("an error", opening), context.Canceled), true)
	waiting := start(func() Session { return bus.nextSession("carts") })
	bus.send("carts", cart("1", "late"))
	session := await("a session", waiting)
	message := session.one()
	expect("body", body(message), "late")
	expect("deliveries", deliveries(message), uint32(1))
	session.complete(message)
}

// A session has one receiver at a time.
func sessionsTaken(bus *Bus) {
	holder := bus.session("carts", "1")
	expectNotAccepted(bus, "carts", "1")
	holder.close()
	expect("session id", bus.session("carts", "1").sdk.SessionID(), "1")
}

// A closed receiver unlocks its session at once, and unsettled messages are delivered again, uncounted.
func sessionsClosed(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("1", "b"), cart("1", "c"))
	closing := bus.session("carts", "1")
	closing.receive(2)
	bus.expectCounts("carts", Counts{"active": 3, "locked": 2})
	closing.close()
	bus.expectCounts("carts", Counts{"active": 3, "locked": 0})
	session := bus.nextSession("carts")
	messages := session.receive(3)
	expect("bodies", bodies(messages), []string{"a", "b", "c"})
	expect("deliveries", mapped(messages, deliveries), []uint32{1, 1, 1})
	session.complete(messages...)
}

// Receivers of different sessions work at the same time and do not get each other's messages.
func sessionsSideBySide(bus *Bus) {
	bus.send("carts", ofThreeSessions(9)...)
	var sessions []Session
	for range 3 {
		sessions = append(sessions, bus.nextSession("carts"))
	}
	slices.SortFunc(sessions, func(a, b Session) int { return strings.Compare(a.sdk.SessionID(), b.sdk.SessionID()) })
	for index := range 9 {
		session := sessions[index%3]
		message := session.one()
		expect("body", body(message), fmt.Sprint(index))
		session.complete(message)
	}
	bus.expectCounts("carts", Counts{"active": 0, "locked": 0})
}

// Loops over several sessions get their own messages, in order.
func sessionsStreams(bus *Bus) {
	bus.send("carts", ofThreeSessions(9)...)
	var streams []<-chan started[[]string]
	for range 3 {
		streams = append(streams, start(func() []string {
			session := bus.nextSession("carts")
			seen := []string{session.sdk.SessionID() + ":"}
			for len(seen) < 4 {
				messages := must(session.ReceiveMessages(soon(), 2, nil))
				session.complete(messages...)
				seen = append(seen, bodies(messages)...)
			}
			return seen
		}))
	}
	seen := mapped(streams, func(stream <-chan started[[]string]) string { return strings.Join(await("messages", stream), " ") })
	slices.Sort(seen)
	expect("bodies by session", seen, []string{"0: 0 3 6", "1: 1 4 7", "2: 2 5 8"})
	bus.expectCounts("carts", Counts{"active": 0, "locked": 0})
}

// A session receiver may use receive-and-delete.
func sessionsReceiveAndDelete(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
	options := &azservicebus.SessionReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete}
	session := sessionOf(bus.AcceptSessionForQueue(soon(), "carts", "1", options))
	expect("bodies", bodies(session.receive(2)), []string{"a", "c"})
	bus.expectCounts("carts", Counts{"active": 1, "locked": 0})
}

// A subscription may require sessions, whether or not others of the topic do.
func sessionsSubscription(bus *Bus) {
	bus.send("steps", cart("1", "a"), cart("2", "b"), cart("1", "c"))
	session := sessionOf(bus.AcceptSessionForSubscription(soon(), "steps", "by-cart", "1", nil))
	messages := session.receive(2)
	expect("bodies of the session", bodies(messages), []string{"a", "c"})
	session.complete(messages...)
	neighbour := bus.subscriber("steps", "all")
	copies := neighbour.receive(3)
	expect("bodies of the neighbour", bodies(copies), []string{"a", "b", "c"})
	expect("session ids", mapped(copies, sessionID), []string{"1", "2", "1"})
	neighbour.complete(copies...)
	bus.expectCounts("steps/Subscriptions/by-cart", Counts{"active": 1})
	next := sessionOf(bus.AcceptNextSessionForSubscription(soon(), "steps", "by-cart", nil))
	expect("session id", next.sdk.SessionID(), "2")
}

// A session queue or subscription rejects receivers without a session.
func sessionsPlainReceiver(bus *Bus) {
	description := "It is not possible for an entity that requires sessions to create a non-sessionful message receiver."
	for _, receiver := range []Receiver{bus.receiver("carts"), bus.subscriber("steps", "by-cart")} {
		err := receiver.tryReceive()
		expectCondition(amqp.ErrCondNotAllowed, err)
		expectErrorText(description, err)
	}
}

// An entity without sessions rejects session receivers, and so does a dead-letter queue.
func sessionsOnPlainQueue(bus *Bus) {
	for _, entity := range []string{"orders", "steps/Subscriptions/all", "carts/$DeadLetterQueue"} {
		_, err := bus.AcceptNextSessionForQueue(within(promptly), entity, nil)
		expectCondition(amqp.ErrCondNotAllowed, err)
		expectErrorText("A sessionful message receiver cannot be created on an entity that does not require sessions.", err)
		_, err = bus.AcceptSessionForQueue(within(promptly), entity, "1", nil)
		expectCondition(amqp.ErrCondNotAllowed, err)
	}
}

// A session id has at most 128 characters.
func sessionsLongID(bus *Bus) {
	longest := strings.Repeat("c", 128)
	expect("session id", bus.session("carts", longest).sdk.SessionID(), longest)
	_, err := bus.AcceptSessionForQueue(within(promptly), "carts", longest+"c", nil)
	expect("whether it is refused", err != nil && !errors.Is(err, context.DeadlineExceeded), true)
}

// A disabled queue detaches its session receivers and rejects new ones.
func sessionsDisabled(bus *Bus) {
	session := bus.session("carts", "1")
	lost := start(session.tryReceive)
	bus.configure("carts", Values{"Status": "ReceiveDisabled"})
	bus.send("carts", cart("1", "kept"))
	expectDisabled(await("the end of the receiver", lost))
	_, err := bus.AcceptNextSessionForQueue(within(promptly), "carts", nil)
	expectDisabled(err)
	_, err = bus.AcceptSessionForQueue(within(promptly), "carts", "1", nil)
	expectDisabled(err)
	bus.configure("carts", Values{"Status": "Active"})
	expect("session id", bus.nextSession("carts").sdk.SessionID(), "1")
}

// cart is a message of a session.
func cart(session, body string) *Message { return &Message{Body: []byte(body), SessionID: &session} }

// ofThreeSessions are messages of three sessions in turn.
func ofThreeSessions(count int) []*Message {
	var messages []*Message
	for index := range count {
		messages = append(messages, cart(fmt.Sprint(index%3), fmt.Sprint(index)))
	}
	return messages
}

func sessionID(message *Received) string { return *message.SessionID }

// expectWaiting asserts that a started function has not ended yet.
func expectWaiting[T any](waiting <-chan started[T]) {
	select {
	case <-waiting:
		panic("it does not wait")
	case <-within(nothing).Done():
	}
}

func expectNotAccepted(bus *Bus, queue, id string) {
	_, err := bus.AcceptSessionForQueue(within(promptly), queue, id, nil)
	expectTaken(err)
}

func expectTaken(err error) { expectCondition("com.microsoft:session-cannot-be-locked", err) }
