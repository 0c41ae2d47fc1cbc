package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func init() {
	register("send", map[string]func(*Bus){"single": single, "batch": batch, "properties": properties})
	register("receive", map[string]func(*Bus){"peek_lock": peekLock, "receive_and_delete": receiveAndDelete})
	register("settle", map[string]func(*Bus){"completes": completes, "abandons": abandons, "dead_letters": deadLetters})
	register("locks", map[string]func(*Bus){"renews": renews, "loses_lock": losesLock})
	register("peek", map[string]func(*Bus){"states": states})
	register("scheduling", map[string]func(*Bus){"annotated": annotated, "by_request": byRequest, "cancelled": cancelled})
	register("deferral", map[string]func(*Bus){"by_number": byNumber, "not_found": deferredNotFound})
	register("duplicates", map[string]func(*Bus){"dropped": dropped})
	register("limits", map[string]func(*Bus){"too_large": tooLarge})
}

// One message per call arrives, in the order sent.
func single(bus *Bus) {
	bus.send("orders", message("first"), message("second"))
	receiver := bus.receiver("orders")
	messages := bus.receive(receiver, 2)
	expect("bodies", bodies(messages), []string{"first", "second"})
	for _, message := range messages {
		must(receiver.CompleteMessage(bus.ctx, message, nil))
	}
}

// A batch takes messages up to its size, says when it is full, and arrives whole.
func batch(bus *Bus) {
	sender := bus.sender("orders")
	batch, err := sender.NewMessageBatch(bus.ctx, &azservicebus.MessageBatchOptions{MaxBytes: 4096})
	must(err)
	for err == nil {
		err = batch.AddMessage(message(strings.Repeat("x", 512)), nil)
	}
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) || batch.NumMessages() < 5 || batch.NumMessages() > 7 {
		panic("the batch was not full when it should be")
	}
	must(sender.SendMessageBatch(bus.ctx, batch, nil))
	bus.receive(bus.receiver("orders"), int(batch.NumMessages()))
}

// Everything an application can set on a message is what the receiver reads.
func properties(bus *Bus) {
	instant := time.Date(2024, 2, 29, 12, 30, 15, 250_000_000, time.UTC)
	application := map[string]any{
		"text": "größer", "whole": int64(42), "fraction": 0.5, "flag": true, "nothing": nil, "instant": instant,
	}
	bus.send("orders", &azservicebus.Message{
		Body: []byte(`{"total": 3}`), ApplicationProperties: application,
		MessageID: to("order-17"), ContentType: to("application/json"), CorrelationID: to("request-4"),
		Subject: to("placed"), To: to("warehouse"), ReplyTo: to("confirmations"), ReplyToSessionID: to("cart-7"),
		PartitionKey: to("eu"), TimeToLive: to(5 * time.Minute),
	})
	seen := bus.receive(bus.receiver("orders"), 1)[0]
	seen.ApplicationProperties["instant"] = seen.ApplicationProperties["instant"].(time.Time).UTC()
	expect("application properties", seen.ApplicationProperties, application)
	expect("body", string(seen.Body), `{"total": 3}`)
	expect("message id", seen.MessageID, "order-17")
	texts := []*string{seen.ContentType, seen.CorrelationID, seen.Subject, seen.To, seen.ReplyTo, seen.ReplyToSessionID, seen.PartitionKey}
	for at, text := range []string{"application/json", "request-4", "placed", "warehouse", "confirmations", "cart-7", "eu"} {
		expect("text", *texts[at], text)
	}
	expect("time to live", *seen.TimeToLive, 5*time.Minute)
	expect("expiry", seen.ExpiresAt.UTC(), seen.EnqueuedTime.Add(5*time.Minute).UTC())
	expect("sequence number", *seen.SequenceNumber, int64(1))
	expect("enqueued sequence number", seen.EnqueuedSequenceNumber, (*int64)(nil))
	expect("state", seen.State, azservicebus.MessageStateActive)
}

// A received message is locked until it is settled.
func peekLock(bus *Bus) {
	bus.send("orders", message("a"), message("b"))
	receiver := bus.receiver("orders")
	messages := bus.receive(receiver, 2)
	expect("bodies", bodies(messages), []string{"a", "b"})
	left := time.Until(*messages[0].LockedUntil)
	if left < 30*time.Second || left > 61*time.Second {
		panic("a fresh lock of one minute has " + left.String() + " left")
	}
	bus.expectCounts("orders", map[string]int{"active": 2, "locked": 2})
	must(receiver.CompleteMessage(bus.ctx, messages[0], nil))
	must(receiver.CompleteMessage(bus.ctx, messages[1], nil))
	bus.expectCounts("orders", map[string]int{"active": 0, "locked": 0})
}

// What is received in that mode is gone.
func receiveAndDelete(bus *Bus) {
	bus.send("orders", message("a"), message("b"))
	receiver := bus.receiverWith("orders", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	expect("bodies", bodies(bus.receive(receiver, 2)), []string{"a", "b"})
	bus.expectCounts("orders", map[string]int{"active": 0})
}

func completes(bus *Bus) {
	bus.send("orders", message("a"))
	receiver := bus.receiver("orders")
	must(receiver.CompleteMessage(bus.ctx, bus.receive(receiver, 1)[0], nil))
	bus.expectCounts("orders", map[string]int{"active": 0})
	bus.receiveNothing(receiver)
}

// An abandoned message comes back, counted and with its changed properties.
func abandons(bus *Bus) {
	bus.send("orders", message("a"))
	receiver := bus.receiver("orders")
	first := bus.receive(receiver, 1)[0]
	changes := map[string]any{"tried": "yes"}
	must(receiver.AbandonMessage(bus.ctx, first, &azservicebus.AbandonMessageOptions{PropertiesToModify: changes}))
	again := bus.receive(receiver, 1)[0]
	expect("deliveries", []uint32{first.DeliveryCount, again.DeliveryCount}, []uint32{1, 2})
	expect("properties", again.ApplicationProperties, changes)
	must(receiver.CompleteMessage(bus.ctx, again, nil))
}

// A dead-lettered message has the reason that was given, and its queue is read like any other.
func deadLetters(bus *Bus) {
	bus.send("orders", message("bad"))
	receiver := bus.receiver("orders")
	reason := &azservicebus.DeadLetterOptions{Reason: to("Rejected"), ErrorDescription: to("no total")}
	must(receiver.DeadLetterMessage(bus.ctx, bus.receive(receiver, 1)[0], reason))
	dead := bus.deadLetters("orders")
	letter := bus.receive(dead, 1)[0]
	expect("reason", []string{*letter.DeadLetterReason, *letter.DeadLetterErrorDescription}, []string{"Rejected", "no total"})
	expect("origin", *letter.EnqueuedSequenceNumber, int64(1))
	// In a dead-letter queue nothing counts (observed 11).
	must(dead.AbandonMessage(bus.ctx, letter, nil))
	again := bus.receive(dead, 1)[0]
	expect("deliveries", again.DeliveryCount, letter.DeliveryCount)
	must(dead.CompleteMessage(bus.ctx, again, nil))
	bus.expectCounts("orders", map[string]int{"dead_letter": 0})
}

func renews(bus *Bus) {
	bus.send("orders", message("a"))
	receiver := bus.receiver("orders")
	letter := bus.receive(receiver, 1)[0]
	for range 2 {
		before := *letter.LockedUntil
		bus.advance(40)
		must(receiver.RenewMessageLock(bus.ctx, letter, nil))
		if !letter.LockedUntil.After(before) {
			panic("the lock does not end later than before (observed 16)")
		}
	}
	must(receiver.CompleteMessage(bus.ctx, letter, nil))
	bus.expectCounts("orders", map[string]int{"active": 0})
}

// Settling after the lock's end fails in the SDK's own words, and the message comes back.
func losesLock(bus *Bus) {
	bus.send("orders", message("late"))
	receiver := bus.receiver("orders")
	for deliveries, settle := range []func(*azservicebus.ReceivedMessage) error{
		func(letter *azservicebus.ReceivedMessage) error {
			return receiver.CompleteMessage(bus.ctx, letter, nil)
		},
		func(letter *azservicebus.ReceivedMessage) error { return receiver.AbandonMessage(bus.ctx, letter, nil) },
		func(letter *azservicebus.ReceivedMessage) error {
			return receiver.RenewMessageLock(bus.ctx, letter, nil)
		},
	} {
		letter := bus.receive(receiver, 1)[0]
		expect("deliveries", letter.DeliveryCount, uint32(deliveries+1))
		bus.advance(61)
		expectCode(settle(letter), azservicebus.CodeLockLost)
	}
	must(receiver.CompleteMessage(bus.ctx, bus.receive(receiver, 1)[0], nil))
}

// Peeking sees locked and scheduled messages, and moves nothing.
func states(bus *Bus) {
	later := message("later")
	later.ScheduledEnqueueTime = to(time.Now().Add(time.Hour))
	bus.send("orders", message("a"), message("b"), later)
	receiver := bus.receiver("orders")
	bus.receive(receiver, 1)
	peeked, err := receiver.PeekMessages(bus.ctx, 10, &azservicebus.PeekMessagesOptions{FromSequenceNumber: to(int64(1))})
	must(err)
	expect("bodies", bodies(peeked), []string{"a", "b", "later"})
	expect("states", []azservicebus.MessageState{peeked[0].State, peeked[2].State},
		[]azservicebus.MessageState{azservicebus.MessageStateActive, azservicebus.MessageStateScheduled})
}

// A message with a time waits for it, and is received as one that was scheduled (observed 6).
func annotated(bus *Bus) {
	later := message("later")
	later.ScheduledEnqueueTime = to(time.Now().Add(5 * time.Minute))
	bus.send("orders", later)
	receiver := bus.receiver("orders")
	bus.receiveNothing(receiver)
	bus.advance(301)
	letter := bus.receive(receiver, 1)[0]
	expect("number and state", []any{*letter.SequenceNumber, letter.State}, []any{int64(2), azservicebus.MessageStateScheduled})
}

// A schedule request answers with a number for each message.
func byRequest(bus *Bus) {
	sender := bus.sender("orders")
	messages := []*azservicebus.Message{message("a"), message("b"), message("c")}
	numbers, err := sender.ScheduleMessages(bus.ctx, messages, time.Now().Add(5*time.Minute), nil)
	must(err)
	expect("numbers", numbers, []int64{1, 2, 3})
	bus.expectCounts("orders", map[string]int{"active": 0, "scheduled": 3})
	bus.advance(301)
	expect("bodies", bodies(bus.receive(bus.receiver("orders"), 3)), []string{"a", "b", "c"})
}

func cancelled(bus *Bus) {
	sender := bus.sender("orders")
	messages := []*azservicebus.Message{message("a"), message("b"), message("c")}
	numbers, err := sender.ScheduleMessages(bus.ctx, messages, time.Now().Add(time.Minute), nil)
	must(err)
	must(sender.CancelScheduledMessages(bus.ctx, []int64{numbers[0], numbers[2]}, nil))
	bus.advance(61)
	expect("bodies", bodies(bus.receive(bus.receiver("orders"), 1)), []string{"b"})
}

// A deferred message comes back by its number alone, and each deferral was a delivery (observed 10).
func byNumber(bus *Bus) {
	bus.send("orders", message("a"))
	receiver := bus.receiver("orders")
	letter := bus.receive(receiver, 1)[0]
	for _, deliveries := range []uint32{1, 2} {
		expect("deliveries", letter.DeliveryCount, deliveries)
		must(receiver.DeferMessage(bus.ctx, letter, nil))
		bus.receiveNothing(receiver)
		letters, err := receiver.ReceiveDeferredMessages(bus.ctx, []int64{*letter.SequenceNumber}, nil)
		must(err)
		letter = letters[0]
		expect("state", letter.State, azservicebus.MessageStateDeferred)
	}
	must(receiver.CompleteMessage(bus.ctx, letter, nil))
	bus.expectCounts("orders", map[string]int{"active": 0, "deferred": 0})
}

func deferredNotFound(bus *Bus) {
	receiver := bus.receiver("orders")
	err := bus.promptly(func(ctx context.Context) error {
		_, err := receiver.ReceiveDeferredMessages(ctx, []int64{4711}, nil)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "Failed to lock one or more specified messages") {
		panic(err)
	}
}

func dropped(bus *Bus) {
	for range 2 {
		bus.send("unique", &azservicebus.Message{Body: []byte("once"), MessageID: to("o-1")})
	}
	receiver := bus.receiver("unique")
	must(receiver.CompleteMessage(bus.ctx, bus.receive(receiver, 1)[0], nil))
	bus.receiveNothing(receiver)
}

// A message beyond the limit is refused, and the sender goes on.
func tooLarge(bus *Bus) {
	sender := bus.sender("orders")
	err := sender.SendMessage(bus.ctx, message(strings.Repeat("x", 300*1024)), nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		panic(err)
	}
	must(sender.SendMessage(bus.ctx, message("small"), nil))
	expect("bodies", bodies(bus.receive(bus.receiver("orders"), 1)), []string{"small"})
}
