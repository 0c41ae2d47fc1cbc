/** Peeking: what is there, in which state, from which sequence number on. */
"use strict";

const { expect, expectCounts, receive, text } = require("../bus");

/** Active, locked, deferred and scheduled messages are all seen, each with its state. */
async function states(bus) {
  await bus.send("orders", { body: "deferred" }, { body: "locked" }, { body: "active" });
  const receiver = bus.receiver("orders");
  const [deferred] = await receive(receiver);
  await receiver.deferMessage(deferred);
  const [locked] = await receive(receiver);
  const inAnHour = new Date(Date.now() + 3_600_000);
  const [scheduled] = await bus.sender("orders").scheduleMessages({ body: "scheduled" }, inAnHour);
  expect("number of the scheduled message", scheduled.toNumber(), 4);

  const peeked = await receiver.peekMessages(10, { fromSequenceNumber: deferred.sequenceNumber });
  const seen = peeked.map((message) => [message.sequenceNumber.toNumber(), text(message), message.state]);
  expect("messages peeked", seen, [
    [1, "deferred", "deferred"],
    [2, "locked", "active"],
    [3, "active", "active"],
    [4, "scheduled", "scheduled"],
  ]);
  expect("locks seen by a peek", peeked.map((message) => message.lockedUntilUtc), Array(4).fill(undefined));
  await receiver.completeMessage(locked);
  await expectCounts(bus, "orders", { deferred: 1, scheduled: 1 });
}

/** A peek starts where it is told to, goes on where it stopped, and moves nothing. */
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

/** A peek at an empty queue is an empty list, not an error. */
async function empty(bus) {
  expect("peeked", await bus.receiver("orders").peekMessages(5), []);
}

module.exports = { states, from_sequence_number, empty };
