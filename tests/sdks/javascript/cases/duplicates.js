/**
 * Duplicate detection: a message whose id was seen within the window is accepted, and dropped.
 *
 * Source: duplicate-detection. The queue `unique` remembers ids for five minutes.
 */
"use strict";

const { expect, expectCounts, later, receive, receiveNothing, text } = require("../bus");

/** The second of two messages with one id is dropped without an error; ids are case-sensitive. */
async function dropped(bus) {
  await bus.send("unique", identified("first", "a"), identified("second", "a"), identified("third", "A"));
  await expectBodies(bus, ["first", "third"]);
}

/** An id is remembered after its message was completed, for the window since its arrival. */
async function window(bus) {
  await bus.send("unique", identified("first", "a"));
  await expectBodies(bus, ["first"]);
  await bus.advance(240);
  await bus.send("unique", identified("again", "a"));
  await expectBodies(bus, []);
  await bus.advance(61);
  await bus.send("unique", identified("anew", "a"));
  await expectBodies(bus, ["anew"]);
}

/** A scheduled message counts from its acceptance, both before and after another message. */
async function scheduled(bus) {
  const sender = bus.sender("unique");
  await sender.scheduleMessages(identified("scheduled", "a"), later(60));
  await sender.sendMessages(identified("plain", "a"));
  await sender.sendMessages(identified("plain", "b"));
  await sender.scheduleMessages(identified("scheduled", "b"), later(60));
  await expectCounts(bus, "unique", { active: 1, scheduled: 1 });
  await bus.advance(61);
  await expectBodies(bus, ["plain", "scheduled"]);
}

/** Each message of a batch is compared with the others and with earlier messages. */
async function batch(bus) {
  await bus.send("unique", identified("first", "a"));
  await bus.send("unique", [identified("again", "a"), identified("second", "b"), identified("twice", "b")]);
  await expectBodies(bus, ["first", "second"]);
}

/** Messages without an id are not duplicates of each other: the broker generates an id for each (D30). */
async function without_id(bus) {
  await bus.send("unique", { body: "x" }, { body: "x" });
  await expectBodies(bus, ["x", "x"]);
}

function identified(body, messageId) {
  return { body, messageId };
}

/** Receives and completes all messages of the queue. */
async function expectBodies(bus, expected) {
  const receiver = bus.receiver("unique");
  if (expected.length > 0) {
    const messages = await receive(receiver, expected.length);
    expect("bodies", messages.map(text), expected);
    for (const message of messages) {
      await receiver.completeMessage(message);
    }
  }
  await receiveNothing(receiver);
  await receiver.close();
}

module.exports = { dropped, window, scheduled, batch, without_id };
