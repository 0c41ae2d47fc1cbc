package main

// Partitioned queues: sequence numbers have a partition in their top 16 bits, and work as any other (D18).
//
// Source: service-bus-partitioning.

import (
	"fmt"

	"github.com/Azure/go-amqp"
)

var partitionsCases = Cases{
	"keys":             partitionsKeys,
	"numbers":          partitionsNumbers,
	"batch_of_one_key": partitionsBatchOfOneKey,
}

// Messages with one partition key are in one partition, in the order sent, and keep the key.
func partitionsKeys(bus *Bus) {
	bus.send("partitioned", keyed("a", "eu"), keyed("b", "eu"), keyed("c", "eu"))
	bus.send("partitioned", texts(numbered(0, 20)...)...)
	receiver := bus.receiver("partitioned")
	messages := receiver.receive(23)
	var ofEU []*Received
	all, ofKey := map[int64]bool{}, map[int64]bool{}
	for _, message := range messages {
		all[partition(message)] = true
		if message.PartitionKey != nil && *message.PartitionKey == "eu" {
			ofEU = append(ofEU, message)
			ofKey[partition(message)] = true
		}
	}
	expect("bodies of one key", bodies(ofEU), []string{"a", "b", "c"})
	expect("partitions of one key", len(ofKey), 1)
	expect("more than one partition", len(all) > 1, true)
	receiver.complete(messages...)
}

// A sequence number with a partition cancels a scheduled message, receives a deferred one, and starts a peek.
func partitionsNumbers(bus *Bus) {
	// Of eight keys most are not in partition 0.
	var sent []*Message
	for key := range 8 {
		sent = append(sent, keyed(fmt.Sprintf("b%d", key), fmt.Sprintf("key %d", key)))
	}
	sender, receiver := bus.sender("partitioned"), bus.receiver("partitioned")
	sender.send(sent...)
	receiver.deferMessages(receiver.receive(8)...)
	highest := int64(0)
	for _, message := range receiver.peek(10) {
		highest = max(highest, partition(message))
		expect("peeked from its number", body(receiver.peek(1, number(message))[0]), body(message))
		deferred := receiver.deferred(number(message))
		expect("received by its number", bodies(deferred), []string{body(message)})
		receiver.complete(deferred...)
	}
	expect("some in a partition", highest > 0, true)
	for _, message := range sent {
		check(sender.cancel(sender.schedule(later(60), message)...))
	}
	bus.expectCounts("partitioned", Counts{"active": 0, "deferred": 0, "scheduled": 0})
}

// All messages of a batch go to one partition: a batch with two keys is rejected as a whole.
func partitionsBatchOfOneKey(bus *Bus) {
	sender := bus.sender("partitioned")
	expectCondition(amqp.ErrCondNotAllowed, sender.tryBatch(keyed("a", "eu"), keyed("b", "us")))
	sender.sendBatch(keyed("a", "eu"), keyed("b", "eu"))
	bus.expectCounts("partitioned", Counts{"active": 2})
}

func keyed(body, key string) *Message { return &Message{Body: []byte(body), PartitionKey: &key} }

// partition is the top 16 bits of a message's sequence number.
func partition(message *Received) int64 { return number(message) >> 48 }
