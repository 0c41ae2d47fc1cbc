/**
 * Other errors, as the SDK's error, and whether it is retryable.
 *
 * Source: service-bus-messaging-exceptions, service-bus-quotas. Every case that expects an error checks
 * whether it is retryable; these have the conditions that belong to no other topic.
 */
"use strict";

const { environment, expect, expectCounts, expectError } = require("../bus");

/** A client with a wrong key has no access to any entity. */
async function wrong_key(bus) {
  const wrong = environment().SERVICEBUS_CONNECTION_STRING.replace("SharedAccessKey=", "SharedAccessKey=not");
  const stranger = bus.tryingOnce(wrong);
  await expectError("UnauthorizedAccess", stranger.send("orders", { body: "forged" }));
  const receiving = stranger.receiver("orders").receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  await expectError("UnauthorizedAccess", receiving);
  await stranger.close();
}

/** No client sends to a dead-letter queue. */
async function to_dead_letters(bus) {
  const sending = bus.send("orders/$DeadLetterQueue", { body: "bad" });
  await expectGeneral("InvalidOperationError", sending);
}

/** A property of more than 32 KB is an internal error of the service, which is retryable. */
async function long_property(bus) {
  const busOnce = bus.tryingOnce();
  const message = { body: "wide", applicationProperties: { wide: "w".repeat(40_000) } };
  await expectGeneral("InternalServerError", busOnce.send("orders", message));
  await busOnce.close();
  await expectCounts(bus, "orders", { active: 0 });
}

/** Asserts an AMQP condition that the SDK has no code for. */
async function expectGeneral(name, refused) {
  const error = await expectError("GeneralError", refused);
  expect("the condition's name", error.message.split(":")[0], name);
}

module.exports = { wrong_key, to_dead_letters, long_property };
