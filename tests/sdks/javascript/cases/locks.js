/** Locks: renewed in time, or lost with the SDK's own error. */
"use strict";

const { expect, expectError, expectFreshLock, receive, text } = require("../bus");

/** A lock renewed in time lasts longer than its first minute. */
async function renews(bus) {
  await bus.send("orders", { body: "slow" });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  for (let renewal = 0; renewal < 2; renewal += 1) {
    await bus.advance(40);
    expectFreshLock(await receiver.renewMessageLock(message));
  }
  await bus.advance(40);
  await receiver.completeMessage(message);
}

/** Settling after the lock has expired raises the SDK's error, and the message is redelivered and counted. */
async function loses_lock(bus) {
  await bus.send("orders", { body: "late" });
  const receiver = bus.receiver("orders");
  for (const settle of ["completeMessage", "abandonMessage", "deadLetterMessage"]) {
    const [message] = await receive(receiver);
    await bus.advance(61);
    await expectError("MessageLockLost", receiver[settle](message));
  }
  const [message] = await receive(receiver);
  expect("body", text(message), "late");
  expect("delivery count", message.deliveryCount, 3);
  await receiver.completeMessage(message);
}

/** Renewing after the lock has expired raises the same error. */
async function loses_lock_on_renewal(bus) {
  await bus.send("orders", { body: "late" });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  await bus.advance(61);
  await expectError("MessageLockLost", receiver.renewMessageLock(message));
  const [again] = await receive(receiver);
  expect("delivery count", again.deliveryCount, 1);
  await receiver.completeMessage(again);
}

/** Expired locks count as deliveries, as abandons do, until the message is dead-lettered. */
async function expires_to_the_limit(bus) {
  await bus.send("limited", { body: "forgotten" });
  const receiver = bus.receiver("limited");
  for (const deliveries of [0, 1, 2]) {
    const [message] = await receive(receiver);
    expect("delivery count", message.deliveryCount, deliveries);
    await bus.advance(61);
  }
  const deadLetters = bus.deadLetters("limited");
  const [message] = await receive(deadLetters);
  expect("reason", message.deadLetterReason, "MaxDeliveryCountExceeded");
  expect("delivery count", message.deliveryCount, 3);
  await deadLetters.completeMessage(message);
}

module.exports = { renews, loses_lock, loses_lock_on_renewal, expires_to_the_limit };
