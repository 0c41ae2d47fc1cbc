/**
 * Auto-forwarding of messages and dead-lettered messages to another queue, at most four times (D3).
 *
 * Source: service-bus-auto-forwarding, service-bus-dead-letter-queues. `inbox` forwards to `orders`,
 * `hop1` over the others to `hop6`, and `complaints` forwards its dead letters to `orders`.
 */
"use strict";

const { expect, expectCounts, expectError, receive, receiveNothing, text } = require("../bus");

/** A message is forwarded unchanged from queue to queue, with a new sequence number in each. */
async function chain(bus) {
  await bus.send("orders", { body: "direct" });
  const message = { body: "over", messageId: "o-17", subject: "placed", applicationProperties: { total: 3 } };
  await bus.send("inbox", message);
  await expectCounts(bus, "inbox", { active: 0, transfer: 0 });
  const receiver = bus.receiver("orders");
  const [direct, over] = await receive(receiver, 2);
  expect("body", text(over), "over");
  expect("message id", over.messageId, "o-17");
  expect("subject", over.subject, "placed");
  expect("application properties", over.applicationProperties, { total: 3 });
  expect("sequence number", over.sequenceNumber.toNumber(), 2);
  expect("number where it was sent", over.enqueuedSequenceNumber, 1);
  expect("delivery count", over.deliveryCount, 0);
  await receiver.completeMessage(direct);
  await receiver.completeMessage(over);
}

/** A forwarded dead-lettered message keeps its reason and its dead-letter source. */
async function dead_letters(bus) {
  await bus.send("complaints", { body: "bad" });
  const complaints = bus.receiver("complaints");
  const [fresh] = await receive(complaints);
  expect("source of a message that is none", fresh.deadLetterSource, undefined);
  await complaints.abandonMessage(fresh);
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("source", message.deadLetterSource, "complaints");
  expect("reason", message.deadLetterReason, "MaxDeliveryCountExceeded");
  await receiver.completeMessage(message);
  await expectCounts(bus, "complaints", { active: 0, dead_letter: 0 });
}

/** Four forwards are allowed: the fifth fails at its source. */
async function hops(bus) {
  await bus.send("hop2", { body: "four" });
  const receiver = bus.receiver("hop6");
  const [message] = await receive(receiver);
  expect("body", text(message), "four");
  await receiver.completeMessage(message);
  await bus.send("hop1", { body: "five" });
  const description = "The maximum number of allowed hops when forwarding between queues. Value is set to 4.";
  await expectFailed(bus, "hop5", "five", "MaxTransferHopCountExceeded", description);
  await receiveNothing(receiver);
}

/** A message whose target does not exist is moved to the transfer dead-letter queue of its source. */
async function target_deleted(bus) {
  await bus.delete("orders");
  await bus.send("inbox", { body: "lost" });
  await expectFailed(bus, "inbox", "lost", "MessagingEntityNotFoundException");
}

/** So is a message that its target rejects. */
async function target_disabled(bus) {
  await bus.configure("orders", { Status: "SendDisabled" });
  await bus.send("inbox", { body: "early" });
  await expectFailed(bus, "inbox", "early", "MessagingEntityDisabledException");
}

/** So is a message for which its target has no space. */
async function target_full(bus) {
  const large = "x".repeat(200_000);
  await bus.send("tiny", ...Array(5).fill({ body: large }));
  await bus.send("to-tiny", { body: large });
  await expectCounts(bus, "tiny", { active: 5 });
  await expectFailed(bus, "to-tiny", large, "QuotaExceededException");
}

/** A queue that forwards cannot be received from; its dead-letter queues can. */
async function not_received_from(bus) {
  const receiving = bus.receiver("inbox").receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  const error = await expectError("GeneralError", receiving);
  expect("whether the error has the reason", error.message.startsWith("InvalidOperationError"), true);
  await receiveNothing(bus.deadLetters("inbox"));
}

/** Receives the only message that a queue could not forward. */
async function expectFailed(bus, queue, body, reason, description) {
  await expectCounts(bus, queue, { active: 0, dead_letter: 0, transfer_dead_letter: 1 });
  const receiver = bus.transferDeadLetters(queue);
  const [message] = await receive(receiver);
  expect("body", text(message), body);
  expect("reason", message.deadLetterReason, reason);
  if (description !== undefined) {
    expect("description", message.deadLetterErrorDescription, description);
  }
  await receiver.completeMessage(message);
  await expectCounts(bus, queue, { transfer_dead_letter: 0 });
}

module.exports = { chain, dead_letters, hops, target_deleted, target_disabled, target_full, not_received_from };
