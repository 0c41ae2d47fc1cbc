/**
 * Deferred messages, which are received only by their sequence numbers.
 *
 * Source: message-deferral.
 */
"use strict";

const { expect, expectCounts, expectError, number, receive, receiveNothing, text } = require("../bus");

/** Receives skip a deferred message, peeks and counts do not; it is received and locked by its sequence number. */
async function by_number(bus) {
  await bus.send("orders", { body: "a" }, { body: "b" });
  const receiver = bus.receiver("orders");
  await defer(receiver, 2);
  await expectCounts(bus, "orders", { active: 2, deferred: 2, locked: 0 });
  await receiveNothing(receiver);
  expect("states", (await receiver.peekMessages(10)).map((message) => message.state), ["deferred", "deferred"]);
  const messages = await receiver.receiveDeferredMessages([number(2), number(1)]);
  expect("bodies in the requested order", messages.map(text), ["b", "a"]);
  expect("delivery counts", messages.map((message) => message.deliveryCount), [1, 1]);
  expect("states", messages.map((message) => message.state), ["deferred", "deferred"]);
  await expectCounts(bus, "orders", { locked: 2 });
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
  await expectCounts(bus, "orders", { active: 0, deferred: 0, locked: 0 });
}

/** A receive-and-delete receiver also deletes deferred messages. */
async function receive_and_delete(bus) {
  await bus.send("orders", { body: "a" });
  await defer(bus.receiver("orders"));
  const receiver = bus.receiver("orders", { receiveMode: "receiveAndDelete" });
  const [message] = await receiver.receiveDeferredMessages(number(1));
  expect("body", text(message), "a");
  await expectCounts(bus, "orders", { active: 0, deferred: 0 });
}

/** A deferred message stays deferred when it is abandoned or deferred again, or its lock expires. */
async function stays_deferred(bus) {
  await bus.send("orders", { body: "a" });
  const receiver = bus.receiver("orders");
  await defer(receiver);
  let [message] = await receiver.receiveDeferredMessages(number(1));
  await receiver.abandonMessage(message);
  [message] = await receiver.receiveDeferredMessages(number(1));
  expect("delivery count after an abandon", message.deliveryCount, 2);
  await receiver.deferMessage(message);
  [message] = await receiver.receiveDeferredMessages(number(1));
  expect("delivery count after a deferral", message.deliveryCount, 3);
  await bus.advance(61);
  await expectError("MessageLockLost", receiver.completeMessage(message));
  await receiveNothing(receiver);
  [message] = await receiver.receiveDeferredMessages(number(1));
  expect("delivery count after the lock's end", message.deliveryCount, 4);
  await receiver.renewMessageLock(message);
  await receiver.completeMessage(message);
  await expectCounts(bus, "orders", { active: 0, deferred: 0 });
}

/** Deferring changes properties, and so does every later settlement that keeps the message. */
async function properties(bus) {
  await bus.send("orders", { body: "a", applicationProperties: { kept: "k", changed: 1 } });
  const receiver = bus.receiver("orders");
  const [fresh] = await receive(receiver);
  await receiver.deferMessage(fresh, { changed: 2, deferred: true });
  let [message] = await receiver.receiveDeferredMessages(number(1));
  expect("after a deferral", message.applicationProperties, { kept: "k", changed: 2, deferred: true });
  await receiver.abandonMessage(message, { changed: 3 });
  [message] = await receiver.receiveDeferredMessages(number(1));
  expect("after an abandon", message.applicationProperties, { kept: "k", changed: 3, deferred: true });
  await receiver.deadLetterMessage(message, { deadLetterReason: "Rejected", changed: 4 });
  const deadLetters = bus.deadLetters("orders");
  const [dead] = await receive(deadLetters);
  expect("reason", dead.deadLetterReason, "Rejected");
  expect("after a dead-lettering", dead.applicationProperties.changed, 4);
  await deadLetters.completeMessage(dead);
}

/** A deferred message is dead-lettered by its receiver, or after its last delivery. */
async function dead_lettered(bus) {
  await bus.send("limited", { body: "bad" }, { body: "poison" });
  const receiver = bus.receiver("limited");
  await defer(receiver, 2);
  const [bad] = await receiver.receiveDeferredMessages(number(1));
  await receiver.deadLetterMessage(bad, { deadLetterReason: "Rejected", deadLetterErrorDescription: "no total" });
  // Deferring was the first delivery (observed 10).
  for (let delivery = 0; delivery < 2; delivery++) {
    const [poison] = await receiver.receiveDeferredMessages(number(2));
    await receiver.abandonMessage(poison);
  }
  await expectCounts(bus, "limited", { active: 0, deferred: 0, dead_letter: 2 });
  const deadLetters = bus.deadLetters("limited");
  const messages = await receive(deadLetters, 2);
  expect("reasons", messages.map((message) => [text(message), message.deadLetterReason]), [
    ["bad", "Rejected"],
    ["poison", "MaxDeliveryCountExceeded"],
  ]);
  for (const message of messages) {
    await deadLetters.completeMessage(message);
  }
}

/** A dead-lettered message can be deferred. */
async function of_dead_letters(bus) {
  await bus.send("orders", { body: "bad" });
  const receiver = bus.receiver("orders");
  const [bad] = await receive(receiver);
  await receiver.deadLetterMessage(bad);
  const deadLetters = bus.deadLetters("orders");
  const [dead] = await receive(deadLetters);
  await deadLetters.deferMessage(dead);
  await receiveNothing(deadLetters);
  const [message] = await deadLetters.receiveDeferredMessages(dead.sequenceNumber);
  await deadLetters.completeMessage(message);
  await expectCounts(bus, "orders", { dead_letter: 0 });
}

/** Unknown, active and locked messages are not found, and either all messages are received or none. */
async function not_found(bus) {
  await bus.send("orders", { body: "deferred" }, { body: "active" });
  const receiver = bus.receiver("orders");
  const refused = (...numbers) =>
    expectError("MessageNotFound", receiver.receiveDeferredMessages(numbers.map(number)));
  await defer(receiver);
  await refused(4711);
  await refused(2);
  await refused(1, 4711);
  const [message] = await receiver.receiveDeferredMessages(number(1));
  await refused(1);
  await receiver.completeMessage(message);
  await refused(1);
}

/** An expired deferred message is kept until it is requested: then it is not found, and is removed (D9). */
async function expired(bus) {
  for (const [queue, deadLetters] of [
    ["expiring", 1],
    ["orders", 0],
  ]) {
    await bus.send(queue, { body: "old", timeToLive: 30_000 });
    const receiver = bus.receiver(queue);
    await defer(receiver);
    await bus.advance(31);
    await receiveNothing(receiver);
    await expectCounts(bus, queue, { deferred: 1, dead_letter: 0 });
    await expectError("MessageNotFound", receiver.receiveDeferredMessages(number(1)));
    await expectCounts(bus, queue, { deferred: 0, dead_letter: deadLetters });
  }
}

/** Receives and defers this number of messages. */
async function defer(receiver, count = 1) {
  for (const message of await receive(receiver, count)) {
    await receiver.deferMessage(message);
  }
}

module.exports = {
  by_number,
  receive_and_delete,
  stays_deferred,
  properties,
  dead_lettered,
  of_dead_letters,
  not_found,
  expired,
};
