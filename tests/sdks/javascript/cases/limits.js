/**
 * Limits: a message that is too large, a queue that is full, a batch that is rejected as a whole.
 *
 * Source: service-bus-quotas. The queue `tiny` holds a mebibyte, five messages of 200,000 bytes.
 */
"use strict";

const { expect, expectCounts, expectError, receive } = require("../bus");

/** A message over the link's limit is rejected; the link stays open, and accepts the next one. */
async function too_large(bus) {
  const sender = bus.sender("orders");
  await sender.sendMessages({ body: "small" });
  const link = linkOf(sender);
  await expectError("MessageSizeExceeded", sender.sendMessages(sized(300_000)));
  await sender.sendMessages({ body: "small" });
  expect("whether the link is still the same", linkOf(sender) === link, true);
  await expectCounts(bus, "orders", { active: 2 });
}

/** A full queue rejects messages that do not fit until there is space again. */
async function full(bus) {
  const sender = bus.sender("tiny");
  for (let sent = 0; sent < 5; sent++) {
    await sender.sendMessages(sized(200_000));
  }
  await expectError("QuotaExceeded", sender.sendMessages(sized(200_000)));
  await sender.sendMessages({ body: "small enough" });
  const receiver = bus.receiver("tiny");
  const [message] = await receive(receiver);
  await receiver.completeMessage(message);
  await sender.sendMessages(sized(200_000));
  await expectCounts(bus, "tiny", { active: 6 });
}

/** Dead-lettered messages take space, too. */
async function full_of_dead_letters(bus) {
  const sender = bus.sender("tiny");
  const receiver = bus.receiver("tiny");
  for (let sent = 0; sent < 5; sent++) {
    await sender.sendMessages(sized(200_000));
    const [message] = await receive(receiver);
    await receiver.deadLetterMessage(message);
  }
  await expectError("QuotaExceeded", sender.sendMessages(sized(200_000)));
  await expectCounts(bus, "tiny", { active: 0, dead_letter: 5 });
}

/** A batch of which only a part would fit is rejected as a whole. */
async function batch_is_all_or_nothing(bus) {
  const sender = bus.sender("tiny");
  for (let sent = 0; sent < 4; sent++) {
    await sender.sendMessages(sized(200_000));
  }
  const half = sized(100_000);
  await sender.sendMessages(half);
  await expectError("QuotaExceeded", sender.sendMessages([half, half]));
  await expectCounts(bus, "tiny", { active: 5 });
  await sender.sendMessages([half]);
  await expectCounts(bus, "tiny", { active: 6 });
}

/** A batch accepts messages up to the link's limit, and can be sent. */
async function batch_fills_up(bus) {
  const sender = bus.sender("orders");
  const batch = await sender.createMessageBatch();
  expect("limit", batch.maxSizeInBytes, 262_144);
  while (batch.tryAddMessage(sized(50_000)));
  expect("messages of 50,000 bytes in a batch", batch.count, 5);
  await sender.sendMessages(batch);
  await expectCounts(bus, "orders", { active: 5 });
}

function sized(bytes) {
  return { body: Buffer.alloc(bytes) };
}

/** The AMQP link under a sender, which the SDK does not show. */
function linkOf(sender) {
  return sender._sender.link;
}

module.exports = { too_large, full, full_of_dead_letters, batch_is_all_or_nothing, batch_fills_up };
