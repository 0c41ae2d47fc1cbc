/**
 * Scheduled messages: scheduled, waiting, active with a new sequence number, or cancelled.
 *
 * Source: message-sequencing. The client's clock sets the time, to which the namespace's clock is advanced (D20).
 */
"use strict";

const { expect, expectCounts, expectError, later, number, receive, receiveNothing, text } = require("../bus");

/** A message with a scheduled enqueue time waits until then, visible only to peeks, and gets a new number. */
async function annotated(bus) {
  const at = later(300);
  await bus.send("orders", { body: "later", scheduledEnqueueTimeUtc: at });
  await expectCounts(bus, "orders", { active: 0, scheduled: 1 });
  const receiver = bus.receiver("orders");
  await receiveNothing(receiver);
  const [peeked] = await receiver.peekMessages(10);
  expect("state", peeked.state, "scheduled");
  expect("sequence number", peeked.sequenceNumber.toNumber(), 1);
  expectClose("scheduled time", peeked.scheduledEnqueueTimeUtc, at);
  await bus.advance(240);
  await receiveNothing(receiver);
  await bus.advance(61);
  const [message] = await receive(receiver);
  expect("body", text(message), "later");
  // Observed 6.
  expect("state", message.state, "scheduled");
  expect("sequence number", message.sequenceNumber.toNumber(), 2);
  expectClose("enqueued time", message.enqueuedTimeUtc, later(0));
  await receiver.completeMessage(message);
  await expectCounts(bus, "orders", { active: 0, scheduled: 0 });
}

/** The response to a schedule request has a sequence number for each message, in order. */
async function by_request(bus) {
  const sender = bus.sender("orders");
  const numbers = await sender.scheduleMessages([{ body: "a" }, { body: "b" }], later(300));
  expect("sequence numbers", plain(numbers), [1, 2]);
  expect("another", plain(await sender.scheduleMessages({ body: "c" }, later(200))), [3]);
  await expectCounts(bus, "orders", { active: 0, scheduled: 3 });
  await bus.advance(301);
  const receiver = bus.receiver("orders");
  const messages = await receive(receiver, 3);
  const seen = messages.map((message) => [message.sequenceNumber.toNumber(), text(message)]);
  expect("messages in the order of their times", seen, [
    [4, "c"],
    [5, "a"],
    [6, "b"],
  ]);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
}

/** A message scheduled for a time in the past is active at once. */
async function past(bus) {
  await bus.send("orders", { body: "late", scheduledEnqueueTimeUtc: later(-60) });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("sequence number", message.sequenceNumber.toNumber(), 1);
  await receiver.completeMessage(message);
}

/**
 * A batch may contain scheduled and other messages. The SDK copies the first one's properties to the
 * envelope, the time among them; each message's own count.
 */
async function batch(bus) {
  await bus.send("orders", [{ body: "later", scheduledEnqueueTimeUtc: later(60) }, { body: "now" }]);
  await expectCounts(bus, "orders", { active: 1, scheduled: 1 });
  await bus.advance(61);
  const receiver = bus.receiver("orders");
  const messages = await receive(receiver, 2);
  expect("bodies", messages.map(text), ["now", "later"]);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
}

/** A cancelled message is never delivered; the others are. */
async function cancelled(bus) {
  const sender = bus.sender("orders");
  const numbers = await sender.scheduleMessages([{ body: "a" }, { body: "b" }, { body: "c" }], later(60));
  await sender.cancelScheduledMessages(numbers[0]);
  await sender.cancelScheduledMessages([numbers[2]]);
  await expectCounts(bus, "orders", { active: 0, scheduled: 1 });
  await bus.advance(61);
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("body", text(message), "b");
  await receiver.completeMessage(message);
  await receiveNothing(receiver);
}

/** Unknown, cancelled and active messages cannot be cancelled; either all are cancelled or none. */
async function cancel_refused(bus) {
  const sender = bus.sender("orders");
  const refused = (numbers) => expectError("MessageNotFound", sender.cancelScheduledMessages(numbers));
  const [first] = await sender.scheduleMessages({ body: "first" }, later(60));
  await refused(number(4711));
  await refused([first, number(4711)]);
  await expectCounts(bus, "orders", { scheduled: 1 });
  const [second] = await sender.scheduleMessages({ body: "second" }, later(60));
  await sender.cancelScheduledMessages(second);
  await refused(second);
  await bus.advance(61);
  await refused(first);
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  await refused(message.sequenceNumber);
  await receiver.completeMessage(message);
}

/** The time to live starts when the message becomes active: at 5:00, so that it ends at 15:00. */
async function expires(bus) {
  await bus.send("expiring", { body: "short", scheduledEnqueueTimeUtc: later(300), timeToLive: 600_000 });
  await bus.advance(840);
  await expectCounts(bus, "expiring", { active: 1, scheduled: 0, dead_letter: 0 });
  await bus.advance(61);
  const left = bus.expiry === "eager" ? 0 : 1;
  await expectCounts(bus, "expiring", { active: left, dead_letter: 1 - left });
  await receiveNothing(bus.receiver("expiring"));
  const deadLetters = bus.deadLetters("expiring");
  const [message] = await receive(deadLetters);
  expect("reason", message.deadLetterReason, "TTLExpiredException");
  await deadLetters.completeMessage(message);
}

function plain(numbers) {
  return numbers.map((each) => each.toNumber());
}

/** Asserts a time, with a tolerance for the duration of the case. */
function expectClose(what, actual, expected) {
  if (Math.abs(actual.getTime() - expected.getTime()) > 15_000) {
    throw new Error(`${what}: expected about ${expected.toISOString()}, got ${actual.toISOString()}`);
  }
}

module.exports = { annotated, by_request, past, batch, cancelled, cancel_refused, expires };
