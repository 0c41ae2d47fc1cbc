/**
 * Partitioned queues: sequence numbers have a partition in their top 16 bits, and work as any other (D18).
 *
 * Source: service-bus-partitioning.
 */
"use strict";

const { expect, expectCounts, expectError, later, receive, text } = require("../bus");

const QUEUE = "partitioned";

/** Messages with one partition key are in one partition, in the order sent, and keep the key. */
async function keys(bus) {
  await bus.send(QUEUE, keyed("a", "eu"), keyed("b", "eu"), keyed("c", "eu"), ...Array(20).fill({ body: "none" }));
  const receiver = bus.receiver(QUEUE);
  const messages = await receive(receiver, 23);
  const ofEu = messages.filter((message) => message.partitionKey === "eu");
  expect("bodies of one key", ofEu.map(text), ["a", "b", "c"]);
  expect("partitions of one key", new Set(ofEu.map(partition)).size, 1);
  expect("more than one partition", new Set(messages.map(partition)).size > 1, true);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
}

/** A sequence number with a partition cancels a scheduled message, receives a deferred one, and starts a peek. */
async function numbers(bus) {
  // Of eight keys most are not in partition 0.
  const sent = Array.from({ length: 8 }, (_, key) => keyed(`b${key}`, `key ${key}`));
  await bus.send(QUEUE, ...sent);
  const receiver = bus.receiver(QUEUE);
  for (const message of await receive(receiver, 8)) {
    await receiver.deferMessage(message);
  }
  const peeked = await receiver.peekMessages(10);
  expect("some in a partition", peeked.some((message) => partition(message) > 0), true);
  for (const message of peeked) {
    const [first] = await receiver.peekMessages(1, { fromSequenceNumber: message.sequenceNumber });
    expect("peeked from its number", text(first), text(message));
    const [deferred] = await receiver.receiveDeferredMessages(message.sequenceNumber);
    expect("received by its number", text(deferred), text(message));
    await receiver.completeMessage(deferred);
  }
  const sender = bus.sender(QUEUE);
  for (const message of sent) {
    await sender.cancelScheduledMessages(await sender.scheduleMessages(message, later(60)));
  }
  await expectCounts(bus, QUEUE, { active: 0, deferred: 0, scheduled: 0 });
}

/** All messages of a batch go to one partition: a batch with two keys is rejected as a whole. */
async function batch_of_one_key(bus) {
  const sender = bus.sender(QUEUE);
  const error = await expectError("GeneralError", sender.sendMessages([keyed("a", "eu"), keyed("b", "us")]));
  expect("whether the error has the reason", error.message.startsWith("InvalidOperationError"), true);
  await sender.sendMessages([keyed("a", "eu"), keyed("b", "eu")]);
  await expectCounts(bus, QUEUE, { active: 2 });
}

function keyed(body, partitionKey) {
  return { body, partitionKey };
}

/** The top 16 bits of its sequence number. */
function partition(message) {
  return message.sequenceNumber.shiftRightUnsigned(48).toNumber();
}

module.exports = { keys, numbers, batch_of_one_key };
