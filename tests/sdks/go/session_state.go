package main

// Session states, which outlive messages and receivers, and lists of sessions.
//
// Source: message-sessions.

import (
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var sessionStateCases = Cases{
	"set_and_read":    sessionStateSetAndRead,
	"cleared":         sessionStateCleared,
	"outlives":        sessionStateOutlives,
	"subscription":    sessionStateSubscription,
	"too_large":       sessionStateTooLarge,
	"listed":          sessionStateListed,
	"listed_by_state": sessionStateListedByState,
}

// A session has no state until its receiver sets one.
func sessionStateSetAndRead(bus *Bus) {
	session := bus.session("carts", "1")
	session.expectState("")
	for _, state := range []string{"\x00\xff\x01", `{"step":2}`, "half done"} {
		session.setState(state)
		session.expectState(state)
	}
	bus.session("carts", "2").expectState("")
}

// A state that is set to nothing or to empty bytes is read as no state.
func sessionStateCleared(bus *Bus) {
	session := bus.session("carts", "1")
	for _, cleared := range [][]byte{nil, {}} {
		session.setState("half done")
		check(session.sdk.SetSessionState(soon(), cleared, nil))
		session.expectState("")
	}
}

// A state outlives the session's messages, its receivers and their locks.
func sessionStateOutlives(bus *Bus) {
	bus.send("carts", cart("1", "a"))
	first := bus.session("carts", "1")
	message := first.one()
	first.setState("half done")
	first.complete(message)
	first.close()
	second := bus.session("carts", "1")
	second.expectState("half done")
	bus.advance(61)
	bus.session("carts", "1").expectState("half done")
}

// Sessions of a subscription have separate states.
func sessionStateSubscription(bus *Bus) {
	session := sessionOf(bus.AcceptSessionForSubscription(soon(), "steps", "by-cart", "1", nil))
	session.setState("half done")
	session.expectState("half done")
	bus.session("carts", "1").expectState("")
}

// A state has at most 256 KiB; a larger one is rejected and changes nothing.
func sessionStateTooLarge(bus *Bus) {
	largest := strings.Repeat("\xff", 256*1024)
	session := bus.tryingOnce(bus.connectionString()).session("carts", "1")
	session.setState(largest)
	expectErrorText("262144", session.sdk.SetSessionState(soon(), []byte(largest+"!"), nil))
	session.expectState(largest)
}

// The sessions that hold messages are listed, page by page.
func sessionStateListed(bus *Bus) {
	expect("sessions at first", listed(bus, nil), []string{})
	expected := []string{}
	sender := bus.sender("carts")
	for index := range 250 {
		id := fmt.Sprintf("cart-%03d", index)
		expected = append(expected, id)
		sender.send(cart(id, "a"))
	}
	expect("sessions", listed(bus, nil), expected)
	bus.send("steps", cart("1", "a"))
	pager := bus.NewListSessionsForSubscriptionPager("steps", "by-cart", nil)
	expect("sessions of a subscription", idsOf(pager), []string{"1"})
}

// The sessions whose state was set since then are listed, with and without messages; without a time also those with
// messages alone.
func sessionStateListedByState(bus *Bus) {
	bus.send("carts", cart("message alone", "a"))
	bus.session("carts", "before").setState("half done")
	bus.advance(120)
	for _, id := range []string{"set", "cleared"} {
		session := bus.session("carts", id)
		session.setState("half done")
		if id == "cleared" {
			session.setState("")
		}
	}
	expect("sessions since a minute", listed(bus, pointer(later(-60))), []string{"set"})
	expect("sessions before", listed(bus, pointer(later(-180))), []string{"before", "set"})
	expect("sessions to come", listed(bus, pointer(later(60))), []string{})
	expect("sessions", listed(bus, nil), []string{"before", "message alone", "set"})
}

func (session Session) setState(state string) {
	check(session.sdk.SetSessionState(soon(), []byte(state), nil))
}

func (session Session) expectState(expected string) {
	expect("state", string(must(session.sdk.GetSessionState(soon(), nil))), expected)
}

// listed are the ids of the sessions of carts whose state was set since then, or of all.
func listed(bus *Bus, since *time.Time) []string {
	options := &azservicebus.ListSessionsOptions{SessionStateUpdatedAfter: since}
	return idsOf(bus.NewListSessionsForQueuePager("carts", options))
}

func idsOf(pager *runtime.Pager[azservicebus.ListSessionsResponse]) []string {
	ids := []string{}
	for _, page := range everything(pager) {
		ids = append(ids, page.Sessions...)
	}
	return ids
}
