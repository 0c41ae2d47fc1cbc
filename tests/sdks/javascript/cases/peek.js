/** Peeking: messages and their states, from a sequence number on. */
"use strict";

const { expect, expectCounts, receive, text } = require("../bus");

/** Peeking shows locked and waiting messages, and both are active. */
async function states(bus) {
  await bus.send("orders", { body: "locked" }, { body: "waiting" });
  const receiver = bus.receiver("orders");
  const [locked] = await receive(receiver);
  const peeked = await receiver.peekMessages(10);
  const seen = peeked.map((message) => [message.sequenceNumber.toNumber(), text(message), message.state]);
  expect("messages peeked", seen, [
    [1, "locked", "active"],
    [2, "waiting", "active"],
  ]);
  expect("locks seen by a peek", peeked.map((message) => message.lockedUntilUtc), [undefined, undefined]);
  await receiver.completeMessage(locked);
}

/** A peek starts at a sequence number, continues where the last one ended, and changes no message. */
async function from_sequence_number(bus) {
  await bus.send("orders", Array.from({ length: 10 }, (_, index) => ({ body: `b${index + 1}` })));
  const receiver = bus.receiver("orders");
  const numbers = (messages) => messages.map((message) => message.sequenceNumber.toNumber());
  const all = await receiver.peekMessages(20);
  expect("all", numbers(all), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  const peeked = await receiver.peekMessages(3, { fromSequenceNumber: all[4].sequenceNumber });
  expect("sequence numbers", numbers(peeked), [5, 6, 7]);
  expect("bodies", peeked.map(text), ["b5", "b6", "b7"]);
  expect("delivery counts", peeked.map((message) => message.deliveryCount), [0, 0, 0]);
  expect("the last", numbers(await receiver.peekMessages(3, { fromSequenceNumber: all[9].sequenceNumber })), [10]);
  expect("past the end", await receiver.peekMessages(3, { fromSequenceNumber: all[9].sequenceNumber.add(1) }), []);
  await expectCounts(bus, "orders", { active: 10, locked: 0 });
}

/** A peek may omit bodies (observed 7). */
async function without_bodies(bus) {
  await bus.send("orders", { body: "large", subject: "kept", applicationProperties: { kept: 1 } });
  const receiver = bus.receiver("orders");
  const [bare] = await receiver.peekMessages(1, { omitMessageBody: true });
  expect("what is there", [bare.subject, bare.applicationProperties, bare.body], ["kept", { kept: 1 }, undefined]);
  const [whole] = await receiver.peekMessages(1, { fromSequenceNumber: bare.sequenceNumber });
  expect("body", text(whole), "large");
}

/** A peek at an empty queue returns an empty list, not an error. */
async function empty(bus) {
  expect("peeked", await bus.receiver("orders").peekMessages(5), []);
}

module.exports = { states, from_sequence_number, without_bodies, empty };
