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

// The second of two with one id is dropped without an error; ids differ by letter case.
func duplicatesDropped(bus *Bus) {
	bus.send("unique", identified("first", "a"), identified("second", "a"), identified("third", "A"))
	expectUnique(bus, "first", "third")
}

// An id is remembered after its message is gone, for the window from its arrival.
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

// A scheduled message counts from when it is accepted, before a plain one and after it.
func duplicatesScheduled(bus *Bus) {
	sender := bus.sender("unique")
	sender.schedule(later(60), identified("scheduled", "a"))
	sender.send(identified("plain", "a"), identified("plain", "b"))
	sender.schedule(later(60), identified("scheduled", "b"))
	bus.expectCounts("unique", Counts{"active": 1, "scheduled": 1})
	bus.advance(61)
	expectUnique(bus, "plain", "scheduled")
}

// Within a batch, and against what came before it, each message is judged by itself.
func duplicatesBatch(bus *Bus) {
	sender := bus.sender("unique")
	sender.send(identified("first", "a"))
	sender.sendBatch(identified("again", "a"), identified("second", "b"), identified("twice", "b"))
	expectUnique(bus, "first", "second")
}

// Messages without an id are no duplicates of each other: the broker gives each its own (D30).
func duplicatesWithoutID(bus *Bus) {
	bus.send("unique", texts("x", "x")...)
	expectUnique(bus, "x", "x")
}

func identified(body, id string) *Message { return &Message{Body: []byte(body), MessageID: &id} }

// expectUnique receives and completes what is in the queue.
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
