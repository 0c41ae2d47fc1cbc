/** Entities that do not exist: the SDK's error for every operation. */
"use strict";

const { expectError } = require("../bus");

/** Sending to a missing queue. */
async function sender(bus) {
  await expectError("MessagingEntityNotFound", bus.send("missing", { body: "lost" }));
}

/** Receiving from a missing queue. */
async function receiver(bus) {
  await expectError("MessagingEntityNotFound", bus.receiver("missing").receiveMessages(1, { maxWaitTimeInMs: 30_000 }));
}

/** Receiving from the dead-letter queue of a missing queue. */
async function dead_letters(bus) {
  await expectError("MessagingEntityNotFound", bus.deadLetters("missing").receiveMessages(1, { maxWaitTimeInMs: 30_000 }));
}

/** Peeking at a missing queue. */
async function peek(bus) {
  await expectError("MessagingEntityNotFound", bus.receiver("missing").peekMessages(1));
}

module.exports = { sender, receiver, dead_letters, peek };
