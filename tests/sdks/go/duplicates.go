package main

// Duplicate detection: a message whose id was seen within the window is accepted, and dropped.
//
// Source: duplicate-detection. The queue unique remembers ids for five minutes.

var duplicatesCases = Cases{
	"dropped":    duplicatesDropped,
	"window":     duplicatesWindow,
	"scheduled":  duplicatesScheduled,
	"batch":      duplicatesBatch,
	"without_id": duplicatesWithoutID,
}

// The second of two messages with one id is dropped without an error; ids are case-sensitive.
func duplicatesDropped(bus *Bus) {
	bus.send("unique", identified("first", "a"), identified("second", "a"), identified("third", "A"))
	expectUnique(bus, "first", "third")
}

// An id is remembered after its message was completed, for the window since its arrival.
func duplicatesWindow(bus *Bus) {
	bus.send("unique", identified("first", "a"))
	expectUnique(bus, "first")
	bus.advance(240)
	bus.send("unique", identified("again", "a"))
	expectUnique(bus)
	bus.advance(61)
	bus.send("unique", identified("anew", "a"))
	expectUnique(bus, "anew")
}

// A scheduled message counts from its acceptance, both before and after another message.
func duplicatesScheduled(bus *Bus) {
	sender := bus.sender("unique")
	sender.schedule(later(60), identified("scheduled", "a"))
	sender.send(identified("plain", "a"), identified("plain", "b"))
	sender.schedule(later(60), identified("scheduled", "b"))
	bus.expectCounts("unique", Counts{"active": 1, "scheduled": 1})
	bus.advance(61)
	expectUnique(bus, "plain", "scheduled")
}

// Each message of a batch is compared with the others and with earlier messages.
func duplicatesBatch(bus *Bus) {
	sender := bus.sender("unique")
	sender.send(identified("first", "a"))
	sender.sendBatch(identified("again", "a"), identified("second", "b"), identified("twice", "b"))
	expectUnique(bus, "first", "second")
}

// Messages without an id are not duplicates of each other: the broker generates an id for each (D30).
func duplicatesWithoutID(bus *Bus) {
	bus.send("unique", texts("x", "x")...)
	expectUnique(bus, "x", "x")
}

func identified(body, id string) *Message { return &Message{Body: []byte(body), MessageID: &id} }

// expectUnique receives and completes all messages of the queue.
func expectUnique(bus *Bus, expected ...string) {
	receiver := bus.receiver("unique")
	defer receiver.close()
	if len(expected) > 0 {
		messages := receiver.receive(len(expected))
		expect("bodies", bodies(messages), expected)
		receiver.complete(messages...)
	}
	receiver.receiveNothing()
}
