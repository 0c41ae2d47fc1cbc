/** Expiry, under both settings of D1: when the message expires, or when a receiver is active. */
"use strict";

const { expect, expectCounts, receive, receiveNothing, text } = require("../bus");

const REASON = "TTLExpiredException";
const DESCRIPTION = "The message expired and was dead lettered.";

/** An expired message is dead-lettered at once, or counted and peeked until a receiver attaches. */
async function without_receiver(bus) {
  await bus.send("expiring", shortLived("old"), { body: "young" });
  await bus.advance(31);
  const eager = bus.expiry === "eager";
  await expectCounts(bus, "expiring", eager ? { active: 1, dead_letter: 1 } : { active: 2, dead_letter: 0 });
  const receiver = bus.receiver("expiring");
  expect("bodies peeked", (await receiver.peekMessages(10)).map(text), eager ? ["young"] : ["old", "young"]);
  const [message] = await receive(receiver);
  expect("body of what is left", text(message), "young");
  await receiver.completeMessage(message);
  await expectCounts(bus, "expiring", { active: 0, dead_letter: 1 });
  await expectExpired(bus, "expiring", "old", 0);
}

/** If the queue does not dead-letter on expiration, an expired message is removed. */
async function dropped(bus) {
  await bus.send("orders", shortLived("old"));
  await bus.advance(31);
  await expectCounts(bus, "orders", { active: bus.expiry === "eager" ? 0 : 1, dead_letter: 0 });
  await receiveNothing(bus.receiver("orders"));
  await expectCounts(bus, "orders", { active: 0, dead_letter: 0 });
}

/** A locked message can be completed after it has expired. */
async function completed_under_lock(bus) {
  await bus.send("expiring", shortLived("old"));
  const receiver = bus.receiver("expiring");
  const [message] = await receive(receiver);
  await bus.advance(31);
  await receiver.completeMessage(message);
  await expectCounts(bus, "expiring", { active: 0, dead_letter: 0 });
}

/** A message that has expired when it is abandoned is removed at once, under both settings. */
async function abandoned_after_expiry(bus) {
  await bus.send("expiring", shortLived("old"));
  const receiver = bus.receiver("expiring");
  const [message] = await receive(receiver);
  await bus.advance(31);
  await receiver.abandonMessage(message);
  await expectExpired(bus, "expiring", "old", 1);
}

/** A message that has expired when its lock expires is also removed at once. */
async function lock_ends_after_expiry(bus) {
  await bus.send("expiring", shortLived("old"));
  await receive(bus.receiver("expiring"));
  await bus.advance(61);
  await expectExpired(bus, "expiring", "old", 1);
}

/** The queue's time to live applies to messages that have none, and is the maximum for others. */
async function by_default_time_to_live(bus) {
  const fiveMinutes = 5 * 60 * 1000;
  await bus.send("fleeting", { body: "none" }, { body: "long", timeToLive: 24 * 60 * 60 * 1000 });
  const receiver = bus.receiver("fleeting");
  const messages = await receive(receiver, 2);
  for (const message of messages) {
    expect("time to live", message.timeToLive, fiveMinutes);
    await receiver.abandonMessage(message);
  }
  await receiver.close();
  await bus.advance(301);
  await receiveNothing(bus.receiver("fleeting"));
  const deadLetters = bus.deadLetters("fleeting");
  const dead = await receive(deadLetters, 2);
  expect("reasons", dead.map((message) => message.deadLetterReason), [REASON, REASON]);
  for (const message of dead) {
    await deadLetters.completeMessage(message);
  }
}

/** A message that expires after half a lock. */
function shortLived(body) {
  return { body, timeToLive: 30_000 };
}

/** Receives the only dead-lettered message of the queue, with the reason of an expired one. */
async function expectExpired(bus, queue, body, deliveryCount) {
  const receiver = bus.deadLetters(queue);
  const [message] = await receive(receiver);
  expect("body", text(message), body);
  expect("reason", message.deadLetterReason, REASON);
  expect("description", message.deadLetterErrorDescription, DESCRIPTION);
  expect("delivery count", message.deliveryCount, deliveryCount);
  await receiver.completeMessage(message);
}

module.exports = {
  without_receiver,
  dropped,
  completed_under_lock,
  abandoned_after_expiry,
  lock_ends_after_expiry,
  by_default_time_to_live,
};
