/**
 * Session locks: renewed in time, by the application or the SDK, or lost with the locks of received messages.
 *
 * Source: message-sessions, and D17 for a changed queue. The locks of `quick-carts` last twenty seconds: the
 * SDK renews a lock that has ten seconds left, by its own clock. It does so for every receiver by default.
 */
"use strict";

const { expect, expectCounts, expectError, expectFreshLock, receive, text, until, within } = require("../bus");
const { cart } = require("./sessions");

/** Renewing a session's lock in time also extends the locks of its messages. */
async function renews(bus) {
  await bus.send("carts", cart("1", "slow"));
  const receiver = await bus.session("carts", "1");
  const [message] = await receive(receiver);
  for (let renewal = 0; renewal < 2; renewal += 1) {
    await bus.advance(40);
    expectFreshLock(await receiver.renewSessionLock());
  }
  await bus.advance(40);
  await receiver.completeMessage(message);
  await expectCounts(bus, "carts", { active: 0, locked: 0 });
}

/** Settling after the lock has expired raises the SDK's error, and the messages are redelivered and counted. */
async function loses_lock(bus) {
  await bus.send("carts", cart("1", "late"), cart("1", "later"));
  for (const [number, settle] of ["completeMessage", "abandonMessage", "deadLetterMessage"].entries()) {
    const receiver = await bus.session("carts", "1");
    const messages = await receive(receiver, 2);
    expect("delivery counts", messages.map((message) => message.deliveryCount), [number, number]);
    await bus.advance(61);
    for (const message of messages) {
      await expectLost(receiver[settle](message));
    }
    // A second after the lock (observed 63).
    await until("the end of the receiver", () => receiver.isClosed);
  }
  await expectCounts(bus, "carts", { active: 2, locked: 0 });
}

/** Renewing after the lock has expired raises the same error, and so does a receive. */
async function loses_lock_on_renewal(bus) {
  for (const attempt of [
    (receiver) => receiver.renewSessionLock(),
    (receiver) => receiver.receiveMessages(1, { maxWaitTimeInMs: 30_000 }),
  ]) {
    const receiver = await bus.session("carts", "1");
    await bus.advance(61);
    await expectLost(attempt(receiver));
  }
}

/** The error handler is called when the session is lost. */
async function loses_lock_streaming(bus) {
  const receiver = await bus.session("carts", "1");
  const lost = new Promise((resolve) => {
    receiver.subscribe({ processMessage: async () => {}, processError: async ({ error }) => resolve(error) });
  });
  await bus.advance(61);
  await expectLost(Promise.reject(await within("the end of the session", lost)));
}

/** A waiting receiver gets a session whose lock expires, although its receiver is still attached. */
async function passes_on(bus) {
  await bus.send("carts", cart("1", "stuck"));
  await receive(await bus.session("carts", "1"));
  const opening = bus.nextSession("carts");
  await bus.advance(61);
  const receiver = await within("a session", opening);
  const [message] = await receive(receiver);
  expect("delivered", [text(message), message.deliveryCount], ["stuck", 1]);
  await receiver.completeMessage(message);
}

/** Expired locks count as deliveries, as abandons do, until the message is dead-lettered. */
async function expires_to_the_limit(bus) {
  await bus.send("limited-carts", cart("1", "forgotten"), cart("1", "unseen"));
  for (const deliveries of [0, 1]) {
    const receiver = await bus.session("limited-carts", "1");
    const [message] = await receive(receiver);
    expect("delivered", [text(message), message.deliveryCount], ["forgotten", deliveries]);
    await bus.advance(61);
  }
  const deadLetters = bus.deadLetters("limited-carts");
  const [dead] = await receive(deadLetters);
  expect("reason", dead.deadLetterReason, "MaxDeliveryCountExceeded");
  expect("delivery count", dead.deliveryCount, 2);
  await deadLetters.completeMessage(dead);
  const receiver = await bus.session("limited-carts", "1");
  const [message] = await receive(receiver);
  expect("delivered", [text(message), message.deliveryCount], ["unseen", 0]);
  await receiver.completeMessage(message);
}

/** A changed queue loses the locks of its sessions (D17). */
async function changed(bus) {
  await bus.send("carts", cart("1", "held"));
  const holder = await bus.session("carts", "1");
  const [held] = await receive(holder);
  await bus.configure("carts", { MaxDeliveryCount: 5 });
  // The response arrives after the detach, so that the SDK knows of the detach when it settles: it waits a minute for
  // the outcome of a settlement that crosses it.
  await expectLost(holder.renewSessionLock());
  await expectLost(holder.completeMessage(held));
  const receiver = await bus.nextSession("carts");
  const [message] = await receive(receiver);
  expect("delivery count", message.deliveryCount, 1);
  await receiver.completeMessage(message);
}

/** The SDK renews a session's lock automatically, beyond the lock's first duration. */
async function auto_renewed(bus) {
  await bus.send("quick-carts", cart("1", "slow"));
  const receiver = await bus.session("quick-carts", "1");
  const [message] = await receive(receiver);
  const lockedUntil = receiver.sessionLockedUntilUtc;
  await until("a renewal", () => receiver.sessionLockedUntilUtc > lockedUntil);
  await bus.advance(12);
  await receiver.completeMessage(message);
  await expectCounts(bus, "quick-carts", { active: 0, locked: 0 });
}

/** The error of an operation after the session's lock has expired. */
function expectLost(refused) {
  return expectError("SessionLockLost", refused);
}

module.exports = {
  auto_renewed,
  changed,
  expires_to_the_limit,
  loses_lock,
  loses_lock_on_renewal,
  loses_lock_streaming,
  passes_on,
  renews,
};
