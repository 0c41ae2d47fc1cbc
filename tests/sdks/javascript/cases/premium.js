/**
 * The premium tier: messages of any size that their queue allows.
 *
 * Source: service-bus-premium-messaging. The queue `large` allows ten mebibytes, the others one.
 */
"use strict";

const { expect, expectCounts, expectError, receive } = require("../bus");
const { expectErrorText } = require("./sessions");

/** A message of 5 MB arrives unchanged if the queue allows it. */
async function large_message(bus) {
  const sent = Buffer.from(Array.from({ length: 5_000_000 }, (_, index) => (index * 7) % 251));
  await bus.send("large", { body: sent });
  const receiver = bus.receiver("large");
  const [message] = await receive(receiver);
  expect("whether the body is what was sent", sent.equals(message.body), true);
  await receiver.completeMessage(message);
  await expectCounts(bus, "large", { active: 0 });
}

/** Other queues have the tier's default limit of a mebibyte. */
async function too_large(bus) {
  const sender = bus.sender("orders");
  await sender.sendMessages({ body: Buffer.alloc(1_000_000) });
  await expectError("MessageSizeExceeded", sender.sendMessages({ body: Buffer.alloc(1_100_000) }));
  await sender.sendMessages({ body: "small" });
  await expectCounts(bus, "orders", { active: 2 });
}

/**
 * A batch has a mebibyte at most, also where a single message may have more. This SDK uses the link's
 * limit for that of a batch, so that the broker has to refuse.
 */
async function batch(bus) {
  const sender = bus.sender("large");
  const half = { body: Buffer.alloc(500_000) };
  const error = await expectError("GeneralError", sender.sendMessages([half, half, half]));
  expectErrorText(error, "received a batch message with no data in it. Detach origin: Publisher.");
  await expectCounts(bus, "large", { active: 0 });
  await sender.sendMessages([half, half]);
  await expectCounts(bus, "large", { active: 2 });
}

module.exports = { large_message, too_large, batch };
