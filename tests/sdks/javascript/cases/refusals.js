/**
 * What is refused for other reasons, as the SDK's error and with its word on trying again.
 *
 * Source: service-bus-messaging-exceptions, service-bus-quotas. Every case that expects an error checks
 * that word; these have the conditions that belong to no other topic.
 */
"use strict";

const { environment, expect, expectCounts, expectError } = require("../bus");

/** A client whose key is not the namespace's is let in nowhere. */
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

/** A property of more than 32 KB is an internal error of the service, which may be tried again. */
async function long_property(bus) {
  const busOnce = bus.tryingOnce();
  const message = { body: "wide", applicationProperties: { wide: "w".repeat(40_000) } };
  await expectGeneral("InternalServerError", busOnce.send("orders", message));
  await busOnce.close();
  await expectCounts(bus, "orders", { active: 0 });
}

/** Asserts a condition that the SDK has no code of its own for. */
async function expectGeneral(name, refused) {
  const error = await expectError("GeneralError", refused);
  expect("the condition's name", error.message.split(":")[0], name);
}

module.exports = { wrong_key, to_dead_letters, long_property };
