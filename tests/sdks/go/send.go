package main

// Sending: one message, several, a batch, and the properties that arrive at the receiver.

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

var sendCases = Cases{
	"single":           sendSingle,
	"one_by_one":       sendOneByOne,
	"list_of_messages": sendListOfMessages,
	"batch":            sendBatch,
	"properties":       sendProperties,
	"without_id":       sendWithoutID,
	"body_kinds":       sendBodyKinds,
	"cancelled":        sendCancelled,
}

// One message per call arrives, in the order sent.
func sendSingle(bus *Bus) {
	bus.send("orders", texts("first", "second")...)
	expectBodies(bus, "first", "second")
}

// Each message is sent when the previous one has been accepted.
func sendOneByOne(bus *Bus) {
	sends := 20
	if text, isSet := os.LookupEnv("SERVICEBUS_SENDS"); isSet {
		sends = must(strconv.Atoi(text))
	}
	sender := bus.sender("orders")
	for range sends {
		check(sender.SendMessage(soon(), &Message{Body: bytes.Repeat([]byte("x"), 1024)}, nil))
	}
}

// Several messages are sent as one transfer, which this SDK calls a batch, and arrive separately.
func sendListOfMessages(bus *Bus) {
	bus.sender("orders").sendBatch(texts(numbered(0, 5)...)...)
	expectBodies(bus, numbered(0, 5)...)
}

// A batch accepts messages up to its size, reports when it is full, and arrives completely.
func sendBatch(bus *Bus) {
	sender := bus.sender("orders")
	batch := must(sender.NewMessageBatch(soon(), &azservicebus.MessageBatchOptions{MaxBytes: 4096}))
	full := strings.Repeat("x", 512)
	var err error
	for err == nil {
		err = batch.AddMessage(text(full), nil)
	}
	expect("whether the batch reports that it is full", errors.Is(err, azservicebus.ErrMessageTooLarge), true)
	if count := batch.NumMessages(); count < 5 || count > 7 {
		panic(fmt.Errorf("a batch of 4,096 bytes took %d messages of 512 bytes", count))
	}
	check(sender.SendMessageBatch(soon(), batch, nil))
	expectBodies(bus, strings.Split(strings.Repeat(full+" ", int(batch.NumMessages())-1)+full, " ")...)
}

// The receiver reads every property that an application can set on a message.
func sendProperties(bus *Bus) {
	values := Values{
		"text":     "größer",
		"whole":    int64(42),
		"negative": -int64(1 << 40),
		"fraction": 0.5,
		"flag":     true,
		"nothing":  nil,
		"instant":  time.Date(2024, 2, 29, 12, 30, 15, 250_000_000, time.Local),
	}
	timeToLive := 5 * time.Minute
	sent := &Message{
		Body:                  []byte(`{"total":3}`),
		ApplicationProperties: values,
		MessageID:             pointer("order-17"),
		ContentType:           pointer("application/json"),
		CorrelationID:         pointer("request-4"),
		Subject:               pointer("placed"),
		To:                    pointer("warehouse"),
		ReplyTo:               pointer("confirmations"),
		ReplyToSessionID:      pointer("cart-7"),
		PartitionKey:          pointer("eu"),
		TimeToLive:            &timeToLive,
	}
	bus.send("orders", sent)
	receiver := bus.receiver("orders")
	message := receiver.one()
	// A copy of the properties that received messages and messages to send have in common.
	expect("message", message.Message(), sent)
	expect("sequence number", number(message), int64(1))
	expect("enqueued sequence number", message.EnqueuedSequenceNumber, (*int64)(nil))
	expect("deliveries", deliveries(message), uint32(1))
	expect("expiry", *message.ExpiresAt, message.EnqueuedTime.Add(timeToLive))
	expectClose("enqueued time", *message.EnqueuedTime, time.Now())
	receiver.complete(message)
}

// The broker generates an id for a message that has none (D30).
func sendWithoutID(bus *Bus) {
	bus.send("orders", text("no id"))
	receiver := bus.receiver("orders")
	message := receiver.one()
	expect("id is 32 hex digits", regexp.MustCompile("^[0-9a-fA-F]{32}$").MatchString(message.MessageID), true)
	receiver.complete(message)
}

// Bodies that are an AMQP value or sequences arrive unchanged, whatever they contain.
func sendBodyKinds(bus *Bus) {
	kinds := []azservicebus.AMQPAnnotatedMessageBody{
		{Value: Values{"total": int64(3), "lines": []any{"a", "b"}}},
		{Sequence: [][]any{{int64(1), int64(2), "three"}}},
		{Data: [][]byte{{0, 255}}},
		{Data: [][]byte{{}}},
		{Data: [][]byte{bytes.Repeat([]byte("a"), 300), {1}}},
	}
	sender, receiver := bus.sender("orders"), bus.receiver("orders")
	for _, kind := range kinds {
		check(sender.SendAMQPAnnotatedMessage(soon(), &azservicebus.AMQPAnnotatedMessage{Body: kind}, nil))
	}
	for _, kind := range kinds {
		message := receiver.one()
		expect("body", message.RawAMQPMessage.Body, kind)
		receiver.complete(message)
	}
}

// A send that is cancelled between two of its frames leaves its delivery unfinished, and the sender can still be used. The
// message arrives completely or not at all.
func sendCancelled(bus *Bus) {
	sender, receiver := bus.sender("orders"), bus.receiver("orders")
	large := strings.Repeat("x", 200_000)
	for attempt := range 150 {
		// Few of these are cancelled between two frames, and on some machines none: the engine's tests have the rule.
		_ = sender.SendMessage(within(time.Duration(100+20*attempt)*time.Microsecond), text(large), nil)
		small := strconv.Itoa(attempt)
		check(sender.SendMessage(soon(), text(small), nil))
		for body := ""; body != small; {
			message := receiver.one()
			if body = string(message.Body); body != small {
				expect("whether the cancelled message is complete", body == large, true)
			}
			receiver.complete(message)
		}
	}
}

// expectBodies receives and completes all messages of the queue: these bodies in this order, numbered from 1.
func expectBodies(bus *Bus, expected ...string) {
	receiver := bus.receiver("orders")
	messages := receiver.receive(len(expected))
	expect("bodies", bodies(messages), expected)
	for index, message := range messages {
		expect("sequence number", number(message), int64(index+1))
	}
	receiver.complete(messages...)
}
