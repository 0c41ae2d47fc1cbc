/**
 * Auto-delete on idle: a queue that no client uses for five minutes is deleted with its messages.
 *
 * Source: the property AutoDeleteOnIdle of queues. The queue `idle` has it.
 */
"use strict";

const { expectError, later, receive, receiveNothing, until } = require("../bus");

/** After five minutes without use the queue no longer exists, also for an open link. */
async function deleted(bus) {
  const sender = bus.sender("idle");
  await sender.sendMessages({ body: "left" });
  await bus.advance(301);
  // The client waits for the outcome of a message on an ended link until its own timeout.
  await until("the end of the link", () => !sender._sender.isOpen());
  await expectError("MessagingEntityNotFound", sender.sendMessages({ body: "late" }));
  const receiving = bus.receiver("idle").receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  await expectError("MessagingEntityNotFound", receiving);
}

/** Sends, peeks and scheduled messages each keep the queue for five more minutes. */
async function used(bus) {
  const sender = bus.sender("idle");
  await bus.advance(240);
  await sender.sendMessages({ body: "kept" });
  await bus.advance(240);
  await bus.receiver("idle").peekMessages(1);
  await bus.advance(240);
  await sender.scheduleMessages({ body: "later" }, later(600));
  await bus.advance(601);
  await bus.advance(240);
  const receiver = bus.receiver("idle");
  for (const message of await receive(receiver, 2)) {
    await receiver.completeMessage(message);
  }
  await receiveNothing(receiver);
}

module.exports = { deleted, used };
