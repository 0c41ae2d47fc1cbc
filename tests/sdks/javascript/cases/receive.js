/** Receiving: with a lock, with deletion, several at once, and as a stream. */
"use strict";

const { expect, expectCounts, expectFreshLock, receive, receiveNothing, text } = require("../bus");

/** A message is locked for the queue's lock duration, and removed when it is completed. */
async function peek_lock(bus) {
  await bus.send("orders", { body: "one" });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("body", text(message), "one");
  expectFreshLock(message.lockedUntilUtc);
  await expectCounts(bus, "orders", { active: 1, locked: 1 });
  await receiver.completeMessage(message);
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
  await receiveNothing(receiver);
}

/** A message is removed as soon as it has been delivered. */
async function receive_and_delete(bus) {
  await bus.send("orders", { body: "one" }, { body: "two" });
  const receiver = bus.receiver("orders", { receiveMode: "receiveAndDelete" });
  const messages = await receive(receiver, 2);
  expect("bodies", messages.map(text), ["one", "two"]);
  expect("delivery counts", messages.map((message) => message.deliveryCount), [0, 0]);
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
  await receiveNothing(receiver);
}

/** A receive for more messages than available returns those that are available, in order. */
async function several(bus) {
  await bus.send("orders", numbered(0, 20).map((body) => ({ body })));
  const receiver = bus.receiver("orders");
  const messages = await receiver.receiveMessages(50, { maxWaitTimeInMs: 5_000 });
  expect("bodies", messages.map(text), numbered(0, 20));
  for (const message of messages.reverse()) {
    await receiver.completeMessage(message);
  }
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
}

/** A handler of `subscribe` gets every message, and each is completed automatically. */
async function stream(bus) {
  await bus.send("orders", numbered(0, 5).map((body) => ({ body })));
  const receiver = bus.receiver("orders");
  const bodies = [];
  await new Promise((resolve, reject) => {
    receiver.subscribe({
      processMessage: async (message) => {
        bodies.push(text(message));
        if (bodies.length === 5) {
          resolve();
        }
      },
      processError: async ({ error }) => reject(error),
    });
  });
  expect("bodies", bodies, numbered(0, 5));
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
}

/** A receive that is already waiting gets a message that is sent later. */
async function waiting(bus) {
  const receiver = bus.receiver("orders");
  const received = receive(receiver);
  await bus.send("orders", { body: "late" });
  const [message] = await received;
  expect("body", text(message), "late");
  expect("delivery count", message.deliveryCount, 0);
  await receiver.completeMessage(message);
}

/** An iterator gets messages one by one; this SDK has no prefetch. */
async function prefetch(bus) {
  await bus.send("orders", numbered(0, 3).map((body) => ({ body })));
  const receiver = bus.receiver("orders");
  const bodies = [];
  for await (const message of receiver.getMessageIterator()) {
    await expectCounts(bus, "orders", { active: 3 - bodies.length, locked: 1 });
    bodies.push(text(message));
    await receiver.completeMessage(message);
    if (bodies.length === 3) {
      break;
    }
  }
  expect("bodies", bodies, numbered(0, 3));
}

/** A closed receiver leaves the messages that it did not receive unchanged, and those that it received locked. */
async function closed(bus) {
  await bus.send("orders", numbered(0, 5).map((body) => ({ body })));
  const closing = bus.receiver("orders");
  const [first, second] = await receive(closing, 2);
  await closing.close();
  await expectCounts(bus, "orders", { active: 5, locked: 2 });
  const receiver = bus.receiver("orders");
  const rest = await receive(receiver, 3);
  expect("bodies", rest.map(text), numbered(2, 5));
  expect("delivery counts", rest.map((message) => message.deliveryCount), [0, 0, 0]);
  for (const message of [first, second, ...rest]) {
    await receiver.completeMessage(message);
  }
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
}

/** A polling receiver gets messages that arrive between two polls once. */
async function polling(bus) {
  const receiver = bus.receiver("orders");
  for (const body of numbered(0, 3)) {
    await receiveNothing(receiver);
    await bus.send("orders", { body });
    const [message] = await receive(receiver);
    expect("body", text(message), body);
    expect("delivery count", message.deliveryCount, 0);
    await receiver.completeMessage(message);
  }
  await expectCounts(bus, "orders", { active: 0, locked: 0 });
}

function numbered(from, to) {
  return Array.from({ length: to - from }, (_, index) => `number ${from + index}`);
}

module.exports = { peek_lock, receive_and_delete, several, stream, waiting, prefetch, closed, polling };
