/** Receivers that close with a message locked, under both settings of D2. */
"use strict";

const { execFile } = require("node:child_process");
const { join } = require("node:path");
const { promisify } = require("node:util");

const { environment, expect, expectCounts, expectError, receive, receiveNothing } = require("../bus");

/** A receiver is closed with a message locked; the lock is kept, or released at once. */
async function closed(bus) {
  await bus.send("orders", { body: "held" });
  const held = await receiveAndClose(bus);
  const receiver = bus.receiver("orders");
  if (bus.locksOnDetach === "keep") {
    await receiveNothing(receiver);
    await expectCounts(bus, "orders", { active: 1, locked: 1 });
    // The lock is kept: its token still renews it.
    await receiver.renewMessageLock(held);
  } else {
    const [again] = await receive(receiver);
    expect("delivery count", again.deliveryCount, 0);
    await expectError("MessageLockLost", receiver.renewMessageLock(held));
    await receiver.abandonMessage(again);
  }
  await expectReturn(bus);
}

/** After its receiver is closed, a message is settled by its lock token while the lock is valid. */
async function settled_by_token(bus) {
  await bus.send("orders", { body: "held" });
  const held = await receiveAndClose(bus);
  const receiver = bus.receiver("orders");
  if (bus.locksOnDetach === "keep") {
    await receiver.completeMessage(held);
    await expectCounts(bus, "orders", { active: 0, locked: 0 });
  } else {
    await expectError("MessageLockLost", receiver.completeMessage(held));
    const [again] = await receive(receiver);
    expect("delivery count", again.deliveryCount, 0);
    await receiver.completeMessage(again);
  }
}

/** A process is killed with a message locked, which ends its connection. */
async function dropped(bus) {
  await bus.send("orders", { body: "held" });
  const dying = join(__dirname, "..", "die_holding_a_lock.js");
  const env = { ...process.env, ...environment(), NODE_EXTRA_CA_CERTS: environment().SERVICEBUS_CA_FILE };
  await promisify(execFile)(process.execPath, [dying, "orders"], { timeout: 120_000, env });
  if (bus.locksOnDetach === "release") {
    await expectCounts(bus, "orders", { active: 1, locked: 0 });
    const receiver = bus.receiver("orders");
    const [message] = await receive(receiver);
    expect("delivery count", message.deliveryCount, 0);
    await receiver.abandonMessage(message);
  } else {
    await expectCounts(bus, "orders", { active: 1, locked: 1 });
  }
  await expectReturn(bus);
}

async function receiveAndClose(bus) {
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  await receiver.close();
  return message;
}

/** After a minute the message is available again, counted once, by its expired lock or by the abandon. */
async function expectReturn(bus) {
  await bus.advance(61);
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("delivery count", message.deliveryCount, 1);
  await receiver.completeMessage(message);
  await expectCounts(bus, "orders", { active: 0, dead_letter: 0 });
}

module.exports = { closed, settled_by_token, dropped };
