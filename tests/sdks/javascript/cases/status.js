/**
 * Entity status: operations that a disabled queue rejects, when a link attaches and when one is attached.
 *
 * Source: entity-suspend, and D27 for what is locked.
 */
"use strict";

const { expect, expectCounts, expectError, receive, text } = require("../bus");

/** No client may send to a disabled queue or receive from it; its messages are kept. */
async function disabled(bus) {
  await bus.send("orders", { body: "kept" });
  await bus.configure("orders", { Status: "Disabled" });
  await expectNoSend(bus);
  await expectNoReceive(bus);
  await bus.configure("orders", { Status: "Active" });
  await expectReceive(bus, "kept");
}

/** Clients can receive from a queue that is disabled for sends. */
async function send_disabled(bus) {
  await bus.send("orders", { body: "kept" });
  await bus.configure("orders", { Status: "SendDisabled" });
  await expectNoSend(bus);
  await expectReceive(bus, "kept");
}

/** Clients can send to a queue that is disabled for receives. */
async function receive_disabled(bus) {
  await bus.configure("orders", { Status: "ReceiveDisabled" });
  await bus.send("orders", { body: "kept" });
  await expectNoReceive(bus);
  await expectCounts(bus, "orders", { active: 1, locked: 0 });
}

/** An open sender is rejected while the queue is disabled, and can send afterwards. */
async function open_sender(bus) {
  const sender = bus.sender("orders");
  await sender.sendMessages({ body: "before" });
  await bus.configure("orders", { Status: "Disabled" });
  await expectDisabled(sender.sendMessages({ body: "meanwhile" }));
  await bus.configure("orders", { Status: "Active" });
  await sender.sendMessages({ body: "after" });
  await expectReceive(bus, "before");
  await expectReceive(bus, "after");
}

/** An open receiver loses its link, and receives again once the queue is active. */
async function open_receiver(bus) {
  const receiver = bus.receiver("orders");
  const errors = [];
  const lost = new Promise((resolve) => {
    receiver.subscribe({
      processMessage: async () => {},
      processError: async ({ error }) => {
        errors.push(error);
        resolve();
      },
    });
  });
  await bus.configure("orders", { Status: "ReceiveDisabled" });
  await bus.send("orders", { body: "kept" });
  await lost;
  await expectDisabled(Promise.reject(errors[0]));
  await receiver.close();
  await bus.configure("orders", { Status: "Active" });
  await expectReceive(bus, "kept");
}

/** A lock keeps its expiry time while its queue is disabled (D27), unless it ends with its link (D2). */
async function locked(bus) {
  await bus.send("orders", { body: "held" });
  const receiver = bus.receiver("orders");
  const [held] = await receive(receiver);
  await bus.configure("orders", { Status: "Disabled" });
  // The response arrives after the detach, so that the SDK knows of the detach when it settles.
  await expectDisabled(receiver.renewMessageLock(held));
  await expectDisabled(receiver.completeMessage(held));
  await bus.configure("orders", { Status: "Active" });
  const keeps = bus.locksOnDetach === "keep";
  await expectCounts(bus, "orders", { active: 1, locked: keeps ? 1 : 0 });
  if (keeps) {
    await receiver.completeMessage(held);
  } else {
    await expectError("MessageLockLost", receiver.completeMessage(held));
    await receiver.close();
    await expectReceive(bus, "held");
  }
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
}

function expectDisabled(refused) {
  return expectError("MessagingEntityDisabled", refused);
}

async function expectNoSend(bus) {
  await expectDisabled(bus.send("orders", { body: "refused" }));
}

async function expectNoReceive(bus) {
  await expectDisabled(bus.receiver("orders").receiveMessages(1, { maxWaitTimeInMs: 30_000 }));
}

/** Receives and completes the next message. */
async function expectReceive(bus, body) {
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("body", text(message), body);
  await receiver.completeMessage(message);
  await receiver.close();
}

module.exports = { disabled, send_disabled, receive_disabled, open_sender, open_receiver, locked };
