/**
 * Session states, which outlive messages and receivers.
 *
 * Source: message-sessions. This SDK writes what is not a buffer as JSON, null too, so that a state that it
 * sets to null is there for other SDKs.
 */
"use strict";

const { expect, expectError, receive } = require("../bus");
const { cart, expectErrorText } = require("./sessions");

/** A session has no state until its receiver sets one. */
async function set_and_read(bus) {
  const receiver = await bus.session("carts", "1");
  expect("state at first", await receiver.getSessionState(), null);
  for (const state of [Buffer.from([0, 255, 1]), { step: 2, done: false }, "half done"]) {
    await receiver.setSessionState(state);
    expect("state", await receiver.getSessionState(), state);
  }
  const another = await bus.session("carts", "2");
  expect("state of another session", await another.getSessionState(), null);
}

/** A state set to null, or to an empty one, is read as null. */
async function cleared(bus) {
  const receiver = await bus.session("carts", "1");
  for (const cleared of [null, Buffer.alloc(0)]) {
    await receiver.setSessionState("half done");
    await receiver.setSessionState(cleared);
    expect("state", await receiver.getSessionState(), null);
  }
}

/** A state outlives the session's messages, its receivers and their locks. */
async function outlives(bus) {
  await bus.send("carts", cart("1", "a"));
  const first = await bus.session("carts", "1");
  const [message] = await receive(first);
  await first.setSessionState("half done");
  await first.completeMessage(message);
  await first.close();
  const second = await bus.session("carts", "1");
  expect("state for the second receiver", await second.getSessionState(), "half done");
  await bus.advance(61);
  await expectError("SessionLockLost", second.getSessionState());
  const third = await bus.session("carts", "1");
  expect("state for the third receiver", await third.getSessionState(), "half done");
}

/** Sessions of a subscription have separate states. */
async function subscription(bus) {
  const receiver = await bus.subscriberSession("steps", "by-cart", "1");
  await receiver.setSessionState("half done");
  expect("state", await receiver.getSessionState(), "half done");
  const other = await bus.session("carts", "1");
  expect("state of the queue's session", await other.getSessionState(), null);
}

/** A state has at most 256 KiB; a larger one is rejected and changes nothing. */
async function too_large(bus) {
  const largest = Buffer.alloc(256 * 1024, 255);
  const receiver = await bus.session("carts", "1");
  await receiver.setSessionState(largest);
  const error = await expectError("MessageSizeExceeded", receiver.setSessionState(Buffer.alloc(256 * 1024 + 1, 255)));
  expectErrorText(error, "262144");
  expect("length of the state", (await receiver.getSessionState()).length, largest.length);
}

module.exports = { cleared, outlives, set_and_read, subscription, too_large };
