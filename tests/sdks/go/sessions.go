package main

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func init() {
	register("sessions", map[string]func(*Bus){
		"by_id": byID, "next_available": nextAvailable, "times_out": timesOut, "taken": taken,
		"plain_receiver": plainReceiver, "empty_id": emptyID,
	})
	register("session_locks", map[string]func(*Bus){"renews": renewsSession, "loses_lock": losesSession})
	register("session_state", map[string]func(*Bus){"set_and_read": setAndRead, "cleared": cleared, "listed": listed})
}

func cart(session, body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body), SessionID: &session}
}

func (bus *Bus) session(queue, id string) *azservicebus.SessionReceiver {
	receiver, err := bus.client.AcceptSessionForQueue(bus.ctx, queue, id, nil)
	must(err)
	return receiver
}

// A session is received from in its order, and others are left alone.
func byID(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"))
	receiver := bus.session("carts", "1")
	expect("session", receiver.SessionID(), "1")
	messages := bus.receive(receiver, 2)
	expect("bodies", bodies(messages), []string{"a", "c"})
	for _, message := range messages {
		must(receiver.CompleteMessage(bus.ctx, message, nil))
	}
	must(receiver.Close(bus.ctx))
	bus.expectCounts("carts", map[string]int{"active": 1, "locked": 0})
}

func nextAvailable(bus *Bus) {
	bus.send("carts", cart("7", "a"))
	receiver, err := bus.client.AcceptNextSessionForQueue(bus.ctx, "carts", nil)
	must(err)
	expect("session", receiver.SessionID(), "7")
	expect("bodies", bodies(bus.receive(receiver, 1)), []string{"a"})
}

// Where no session is available the SDK says so when the service has, and not before.
func timesOut(bus *Bus) {
	err := bus.promptly(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := bus.client.AcceptNextSessionForQueue(ctx, "carts", nil)
		return err
	})
	if err == nil {
		panic("there is no session")
	}
}

// A session that is held cannot be accepted: the attach is refused, and is no lost connection (observed 12).
func taken(bus *Bus) {
	bus.send("carts", cart("1", "a"))
	holder := bus.session("carts", "1")
	err := bus.promptly(func(ctx context.Context) error {
		_, err := bus.client.AcceptSessionForQueue(ctx, "carts", "1", nil)
		return err
	})
	if err == nil {
		panic("the session is held")
	}
	expect("bodies", bodies(bus.receive(holder, 1)), []string{"a"})
}

// A receiver without session is refused where there are sessions.
func plainReceiver(bus *Bus) {
	if err := bus.receiveFrom(bus.receiver("carts")); err == nil {
		panic("it is refused")
	}
}

// The empty id is a session like any other (observed 14).
func emptyID(bus *Bus) {
	bus.send("carts", cart("", "a"))
	receiver := bus.session("carts", "")
	expect("bodies", bodies(bus.receive(receiver, 1)), []string{"a"})
}

func renewsSession(bus *Bus) {
	bus.send("carts", cart("1", "a"))
	receiver := bus.session("carts", "1")
	letter := bus.receive(receiver, 1)[0]
	for range 2 {
		bus.advance(40)
		must(receiver.RenewSessionLock(bus.ctx, nil))
	}
	bus.advance(40)
	must(receiver.CompleteMessage(bus.ctx, letter, nil))
	bus.expectCounts("carts", map[string]int{"active": 0})
}

// After the lock's end nothing is settled. The SDK hears of the refusal and tries again, and then takes the message for
// settled: it returns no error.
func losesSession(bus *Bus) {
	bus.send("carts", cart("1", "late"))
	for deliveries := range uint32(3) {
		receiver := bus.session("carts", "1")
		letter := bus.receive(receiver, 1)[0]
		expect("deliveries", letter.DeliveryCount, deliveries+1)
		bus.advance(61)
		_ = receiver.CompleteMessage(bus.ctx, letter, nil)
		must(receiver.Close(bus.ctx))
	}
	bus.expectCounts("carts", map[string]int{"active": 1, "locked": 0})
}

func setAndRead(bus *Bus) {
	receiver := bus.session("carts", "1")
	state, err := receiver.GetSessionState(bus.ctx, nil)
	must(err)
	expect("state at first", len(state), 0)
	must(receiver.SetSessionState(bus.ctx, []byte("half done"), nil))
	state, err = receiver.GetSessionState(bus.ctx, nil)
	must(err)
	expect("state", string(state), "half done")
}

func cleared(bus *Bus) {
	receiver := bus.session("carts", "1")
	for _, none := range [][]byte{nil, {}} {
		must(receiver.SetSessionState(bus.ctx, []byte("half done"), nil))
		must(receiver.SetSessionState(bus.ctx, none, nil))
		state, err := receiver.GetSessionState(bus.ctx, nil)
		must(err)
		expect("state", len(state), 0)
	}
}

// Sessions with messages or with state are listed, page by page (observed 54).
func listed(bus *Bus) {
	bus.send("carts", cart("1", "a"), cart("3", "b"))
	must(bus.session("carts", "2").SetSessionState(bus.ctx, []byte("state"), nil))
	pager := bus.client.NewListSessionsForQueuePager("carts", nil)
	var all []string
	for pager.More() {
		page, err := pager.NextPage(bus.ctx)
		must(err)
		all = append(all, page.Sessions...)
	}
	expect("sessions", all, []string{"1", "2", "3"})
}
