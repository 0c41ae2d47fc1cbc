/** The dead-letter queue: clients receive from it as from any queue, until it is empty. */
"use strict";

const { expect, expectCounts, receive, receiveNothing, text } = require("../bus");

/** Every dead-lettered message is received in order, with its reason, and then removed. */
async function drains(bus) {
  await fill(bus, 5);
  const receiver = bus.deadLetters("orders");
  const reasons = ["R0", "R1", "R2", "R3", "R4"];
  const peeked = await receiver.peekMessages(10);
  expect("reasons peeked", peeked.map((message) => message.deadLetterReason), reasons);
  const messages = await receive(receiver, 5);
  expect("bodies", messages.map(text), ["b0", "b1", "b2", "b3", "b4"]);
  expect("reasons", messages.map((message) => message.deadLetterReason), reasons);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
  await receiveNothing(receiver);
  expect("peeked afterwards", await bus.deadLetters("orders").peekMessages(10), []);
  await expectCounts(bus, "orders", { active: 0, dead_letter: 0 });
}

/** Receive-and-delete also empties a dead-letter queue. */
async function drains_destructively(bus) {
  await fill(bus, 3);
  const receiver = bus.deadLetters("orders", { receiveMode: "receiveAndDelete" });
  const messages = await receive(receiver, 3);
  expect("bodies", messages.map(text), ["b0", "b1", "b2"]);
  await expectCounts(bus, "orders", { active: 0, dead_letter: 0 });
}

/** Dead-letters `number` messages, each with its own reason. */
async function fill(bus, number) {
  await bus.send("orders", Array.from({ length: number }, (_, index) => ({ body: `b${index}` })));
  const receiver = bus.receiver("orders");
  for (const [index, message] of (await receive(receiver, number)).entries()) {
    await receiver.deadLetterMessage(message, { deadLetterReason: `R${index}` });
  }
  await expectCounts(bus, "orders", { active: 0, dead_letter: number });
}

module.exports = { drains, drains_destructively };
