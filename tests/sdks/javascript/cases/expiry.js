/** Expiry, under both settings of D1: at its instant, or once a receiver is active. */
"use strict";

const { expect, expectCounts, receive, receiveNothing, text } = require("../bus");

const REASON = "TTLExpiredException";
const DESCRIPTION = "The message expired and was dead lettered.";

/** An expired message is dead-lettered at once, or stays in peek and counts until a receiver comes. */
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

/** Where the queue does not dead-letter on expiration, an expired message is gone. */
async function dropped(bus) {
  await bus.send("orders", shortLived("old"));
  await bus.advance(31);
  await expectCounts(bus, "orders", { active: bus.expiry === "eager" ? 0 : 1, dead_letter: 0 });
  await receiveNothing(bus.receiver("orders"));
  await expectCounts(bus, "orders", { active: 0, dead_letter: 0 });
}

/** A lock outlives the message's time: completing under it still works. */
async function completed_under_lock(bus) {
  await bus.send("expiring", shortLived("old"));
  const receiver = bus.receiver("expiring");
  const [message] = await receive(receiver);
  await bus.advance(31);
  await receiver.completeMessage(message);
  await expectCounts(bus, "expiring", { active: 0, dead_letter: 0 });
}

/** A message found expired when its lock is given up leaves at once, under both settings. */
async function abandoned_after_expiry(bus) {
  await bus.send("expiring", shortLived("old"));
  const receiver = bus.receiver("expiring");
  const [message] = await receive(receiver);
  await bus.advance(31);
  await receiver.abandonMessage(message);
  await expectExpired(bus, "expiring", "old", 1);
}

/** A message found expired when its lock runs out leaves at once too. */
async function lock_ends_after_expiry(bus) {
  await bus.send("expiring", shortLived("old"));
  await receive(bus.receiver("expiring"));
  await bus.advance(61);
  await expectExpired(bus, "expiring", "old", 1);
}

/** The queue's time to live applies where the message brings none, and is the ceiling of its own. */
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

/** Receives the one dead letter of the queue: expired, with the service's words. */
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
