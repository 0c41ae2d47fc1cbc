/** Settling: complete, abandon up to the delivery limit, dead-letter. */
"use strict";

const { expect, expectCounts, receive, text } = require("../bus");

/** A completed message is removed; the SDK itself rejects settling it again. */
async function completes(bus) {
  await bus.send("orders", { body: "done" });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  await receiver.completeMessage(message);
  const refused = await receiver.abandonMessage(message).catch((error) => error);
  expect("refusal", refused?.message, "The message has either been deleted or already settled");
  await expectCounts(bus, "orders", { active: 0, dead_letter: 0 });
}

/** An abandoned message is available again at once, counted, at its old position and with new properties. */
async function abandons(bus) {
  await bus.send("orders", { body: "first", applicationProperties: { kept: "k", changed: 1 } }, { body: "second" });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  await receiver.abandonMessage(message, { changed: 2, added: "a" });
  const [again, second] = await receive(receiver, 2);
  expect("bodies", [again, second].map(text), ["first", "second"]);
  expect("delivery counts", [again.deliveryCount, second.deliveryCount], [1, 0]);
  expect("sequence number", again.sequenceNumber.toNumber(), 1);
  expect("application properties", again.applicationProperties, { kept: "k", changed: 2, added: "a" });
  expect("lock is the old one", again.lockToken === message.lockToken, false);
  await receiver.completeMessage(again);
  await receiver.completeMessage(second);
}

/** After the last delivery that a queue allows, a message is dead-lettered and keeps its delivery count (D4). */
async function abandons_to_the_limit(bus) {
  await bus.send("limited", { body: "poison", messageId: "p-1" });
  const receiver = bus.receiver("limited");
  for (const deliveries of [0, 1, 2]) {
    const [message] = await receive(receiver);
    expect("delivery count", message.deliveryCount, deliveries);
    await receiver.abandonMessage(message);
  }
  await expectCounts(bus, "limited", { active: 0, dead_letter: 1 });
  const deadLetters = bus.deadLetters("limited");
  const [message] = await receive(deadLetters);
  expect("message id", message.messageId, "p-1");
  expect("reason", message.deadLetterReason, "MaxDeliveryCountExceeded");
  expect("description", message.deadLetterErrorDescription, "Message could not be consumed after 3 delivery attempts.");
  expect("delivery count", message.deliveryCount, 3);
  await deadLetters.completeMessage(message);
  await expectCounts(bus, "limited", { active: 0, dead_letter: 0 });
}

/** A dead-lettered message has the application's reason and the properties that it changed. */
async function dead_letters(bus) {
  await bus.send("orders", { body: "bad", applicationProperties: { kept: 1, changed: "before" } });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  await receiver.deadLetterMessage(message, {
    deadLetterReason: "Rejected",
    deadLetterErrorDescription: "no total",
    changed: "after",
    added: true,
  });
  const deadLetters = bus.deadLetters("orders");
  const [dead] = await receive(deadLetters);
  expect("body", text(dead), "bad");
  expect("reason", dead.deadLetterReason, "Rejected");
  expect("description", dead.deadLetterErrorDescription, "no total");
  const { kept, changed, added } = dead.applicationProperties;
  expect("application properties", { kept, changed, added }, { kept: 1, changed: "after", added: true });
  expect("delivery count", dead.deliveryCount, 0);
  expect("source", dead.deadLetterSource, undefined);
  await deadLetters.completeMessage(dead);
}

module.exports = { completes, abandons, abandons_to_the_limit, dead_letters };
