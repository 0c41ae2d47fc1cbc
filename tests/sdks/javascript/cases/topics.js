/**
 * Topics: subscriptions receive the messages that their rules match.
 *
 * Source: service-bus-queues-topics-subscriptions, topic-filters, service-bus-auto-forwarding,
 * duplicate-detection, service-bus-dead-letter-queues. `prices` has the subscriptions `all`, `cheap`
 * (price < 10) and `eu` (subject and region are equal); `alarms` has `marked`, which has two rules without
 * an action and one with; `jobs` has `limited`, of two deliveries; `calls` finds duplicates and has
 * `to-orders` and `complaints`, which forward; the rules of `checks` can fail.
 */
"use strict";

const { expect, expectCounts, expectError, later, receive, receiveNothing, text } = require("../bus");

/** Every subscription that matches a message has its own copy, with its own sequence number. */
async function fans_out(bus) {
  const second = { ...price("b", 8), messageId: "p-17", correlationId: "c", subject: "changed" };
  await bus.send("prices", price("a", 12), second);
  await expectCounts(bus, "prices/Subscriptions/all", { active: 2 });
  await expectCounts(bus, "prices/Subscriptions/cheap", { active: 1 });
  await expectCounts(bus, "prices/Subscriptions/eu", { active: 0 });
  for (const [subscription, number] of [
    ["all", 2],
    ["cheap", 1],
  ]) {
    const receiver = bus.subscriber("prices", subscription);
    const messages = await receive(receiver, number);
    const message = messages.at(-1);
    expect("body", text(message), "b");
    expect("message id", message.messageId, "p-17");
    expect("correlation id", message.correlationId, "c");
    expect("subject", message.subject, "changed");
    expect("application properties", message.applicationProperties, { price: 8 });
    expect("delivery count", message.deliveryCount, 0);
    expect("sequence number", message.sequenceNumber.toNumber(), number);
    expect("number in the topic", message.enqueuedSequenceNumber, 2);
    for (const each of messages) {
      await receiver.completeMessage(each);
    }
    await receiveNothing(receiver);
  }
  await expectCounts(bus, "prices/Subscriptions/all", { active: 0, locked: 0 });
}

/** The messages of a batch are matched separately; values are compared by type, texts by case. */
async function filtered(bus) {
  await bus.send("prices", [
    price("text", "5"),
    price("float", 9.5),
    { body: "none" },
    { ...price("eu", 20, "eu"), subject: "changed" },
    { ...price("EU", 20, "EU"), subject: "changed" },
    { ...price("new", 10, "eu"), subject: "new" },
  ]);
  for (const [subscription, expected] of [
    ["all", ["text", "float", "none", "eu", "EU", "new"]],
    ["cheap", ["float"]],
    ["eu", ["eu"]],
  ]) {
    const receiver = bus.subscriber("prices", subscription, { receiveMode: "receiveAndDelete" });
    const messages = await receive(receiver, expected.length);
    expect(`received from ${subscription}`, messages.map(text), expected);
    await receiveNothing(receiver);
  }
}

/** Rules without an action create one copy together; one with an action creates another, changed copy. */
async function actions(bus) {
  const properties = { level: 2, secret: "s", kept: "k" };
  const fire = { body: "fire", subject: "new", applicationProperties: properties };
  await bus.send("alarms", fire, { body: "smoke", applicationProperties: { level: 1 } });
  const receiver = bus.subscriber("alarms", "marked");
  const messages = await receive(receiver, 3);
  const copies = messages.map((message) => [text(message), message.subject, message.applicationProperties]);
  copies.sort((a, b) => a[0].localeCompare(b[0]) || a[2].level - b[2].level);
  expect("copies", copies, [
    ["fire", "new", properties],
    ["fire", "raised", { level: 3, kept: "k", seen: true, RuleName: "raised" }],
    ["smoke", undefined, { level: 1 }],
  ]);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
}

/** A subscription's messages are settled like a queue's, independently of other copies. */
async function settled(bus) {
  await bus.send("prices", price("a", 1), price("b", 2), price("c", 3));
  const receiver = bus.subscriber("prices", "all");
  const [first, second, third] = await receive(receiver, 3);
  await receiver.renewMessageLock(first);
  await receiver.completeMessage(first);
  await receiver.deferMessage(second);
  await receiver.abandonMessage(third);
  await expectCounts(bus, "prices/Subscriptions/all", { active: 2, deferred: 1, locked: 0 });
  const [again] = await receive(receiver);
  expect("abandoned", [text(again), again.deliveryCount], ["c", 1]);
  await receiver.completeMessage(again);
  const [peeked] = await receiver.peekMessages(10);
  expect("peeked", [text(peeked), peeked.state], ["b", "deferred"]);
  const [deferred] = await receiver.receiveDeferredMessages(second.sequenceNumber);
  await receiver.completeMessage(deferred);
  await expectCounts(bus, "prices/Subscriptions/all", { active: 0, deferred: 0, locked: 0 });
  await expectCounts(bus, "prices/Subscriptions/cheap", { active: 3 });
}

/** Every subscription has a dead-letter queue, for rejected messages, the delivery limit and expired locks. */
async function dead_letters(bus) {
  await bus.send("jobs", { body: "bad" }, { body: "poison" }, { body: "stuck" });
  const receiver = bus.subscriber("jobs", "limited");
  const [bad, poison] = await receive(receiver, 3);
  await receiver.deadLetterMessage(bad, { deadLetterReason: "Rejected", deadLetterErrorDescription: "no total" });
  await receiver.abandonMessage(poison);
  const [poisonAgain] = await receive(receiver);
  await receiver.abandonMessage(poisonAgain);
  await bus.advance(61);
  const [stuck] = await receive(receiver);
  expect("delivered again", [text(stuck), stuck.deliveryCount], ["stuck", 1]);
  await bus.advance(61);
  await receiveNothing(receiver);
  await expectCounts(bus, "jobs/Subscriptions/limited", { active: 0, dead_letter: 3 });
  const deadLetters = bus.subscriber("jobs", "limited", { subQueueType: "deadLetter" });
  const messages = await receive(deadLetters, 3);
  const reasons = messages.map((message) => [text(message), message.deadLetterReason]);
  expect("reasons", reasons, [
    ["bad", "Rejected"],
    ["poison", "MaxDeliveryCountExceeded"],
    ["stuck", "MaxDeliveryCountExceeded"],
  ]);
  expect("description", messages[0].deadLetterErrorDescription, "no total");
  for (const message of messages) {
    await deadLetters.completeMessage(message);
  }
  await expectCounts(bus, "jobs/Subscriptions/limited", { dead_letter: 0 });
}

/** A topic keeps scheduled messages; rules evaluate them when they are due, and cancelled ones never. */
async function scheduled(bus) {
  const at = later(300);
  await bus.send("prices", { ...price("annotated", 1), scheduledEnqueueTimeUtc: at });
  const sender = bus.sender("prices");
  const numbers = await sender.scheduleMessages([price("asked", 20), price("cancelled", 2)], at);
  await sender.cancelScheduledMessages(numbers[1]);
  await expectError("MessageNotFound", sender.cancelScheduledMessages(numbers[1]));
  await expectCounts(bus, "prices", { scheduled: 2 });
  await expectCounts(bus, "prices/Subscriptions/all", { active: 0, scheduled: 0 });
  await bus.advance(301);
  await expectCounts(bus, "prices", { scheduled: 0 });
  for (const [subscription, expected] of [
    ["all", ["annotated", "asked"]],
    ["cheap", ["annotated"]],
  ]) {
    const receiver = bus.subscriber("prices", subscription);
    const messages = await receive(receiver, expected.length);
    expect(`received from ${subscription}`, messages.map(text), expected);
    expect("state", messages[0].state, "scheduled");
    for (const message of messages) {
      await receiver.completeMessage(message);
    }
  }
}

/** The time to live applies in every subscription separately. */
async function expires(bus) {
  await bus.send("prices", { ...price("old", 1), timeToLive: 30_000 });
  const receiver = bus.subscriber("prices", "all");
  const [message] = await receive(receiver);
  await receiver.completeMessage(message);
  await bus.advance(31);
  await receiveNothing(bus.subscriber("prices", "cheap"));
  await expectCounts(bus, "prices/Subscriptions/cheap", { active: 0, dead_letter: 0 });
}

/** A subscription's own time to live applies, and its dead-lettered messages have that reason. */
async function expires_by_default(bus) {
  await bus.send("checks", { body: "old" });
  await bus.advance(301);
  const deadLetters = bus.subscriber("checks", "fleeting", { subQueueType: "deadLetter" });
  const [message] = await receive(deadLetters);
  expect("reason", message.deadLetterReason, "TTLExpiredException");
  await deadLetters.completeMessage(message);
}

/** A message whose filter fails is dead-lettered by a subscription configured so; no other subscription gets it. */
async function evaluation_errors(bus) {
  const parts = (number) => ({ body: `${number}`, applicationProperties: { parts: number } });
  await bus.send("checks", parts(0), parts(5));
  for (const subscription of ["strict", "lenient"]) {
    const receiver = bus.subscriber("checks", subscription);
    const [message] = await receive(receiver);
    expect("body", text(message), "5");
    await receiver.completeMessage(message);
    await receiveNothing(receiver);
  }
  await expectCounts(bus, "checks/Subscriptions/lenient", { dead_letter: 0 });
  const deadLetters = bus.subscriber("checks", "strict", { subQueueType: "deadLetter" });
  const [message] = await receive(deadLetters);
  expect("dead letter", [text(message), message.deadLetterReason], ["0", "FilterException"]);
  await deadLetters.completeMessage(message);
}

/** A subscription forwards like a queue: messages and dead-lettered messages to different queues. */
async function forwards(bus) {
  await bus.send("calls", { body: "call", messageId: "c-1", applicationProperties: { n: 1 } });
  const orders = bus.receiver("orders");
  const [call] = await receive(orders);
  expect("message", [text(call), call.messageId], ["call", "c-1"]);
  expect("application properties", call.applicationProperties, { n: 1 });
  expect("source of a message that is not a dead letter", call.deadLetterSource, undefined);
  await orders.completeMessage(call);
  const complaints = bus.subscriber("calls", "complaints");
  const [complaint] = await receive(complaints);
  await complaints.abandonMessage(complaint);
  const failures = bus.receiver("failures");
  const [failure] = await receive(failures);
  expect("source", failure.deadLetterSource, "calls/Subscriptions/complaints");
  expect("reason", failure.deadLetterReason, "MaxDeliveryCountExceeded");
  await failures.completeMessage(failure);
  const receiving = bus.subscriber("calls", "to-orders").receiveMessages(1, { maxWaitTimeInMs: 30_000 });
  const error = await expectError("GeneralError", receiving);
  expect("whether the error has the reason", error.message.startsWith("InvalidOperationError"), true);
}

/** A topic drops a duplicate message for all its subscriptions. */
async function duplicates(bus) {
  await bus.send("calls", { body: "first", messageId: "c-1" }, { body: "again", messageId: "c-1" });
  await bus.advance(301);
  await bus.send("calls", { body: "late", messageId: "c-1" });
  const receiver = bus.subscriber("calls", "complaints");
  const messages = await receive(receiver, 2);
  expect("bodies", messages.map(text), ["first", "late"]);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
  await receiveNothing(receiver);
}

/** Names are case-insensitive. */
async function addresses(bus) {
  await bus.send("PRICES", price("a", 1));
  const receiver = bus.receiver("Prices/subscriptions/ALL");
  const [message] = await receive(receiver);
  await receiver.completeMessage(message);
  await expectCounts(bus, "prices/Subscriptions/all", { active: 0 });
}

/** Clients cannot send to a subscription or receive from a topic. */
async function wrong_direction(bus) {
  for (const attempt of [
    () => bus.send("prices/Subscriptions/all", { body: "lost" }),
    () => bus.receiver("prices").receiveMessages(1, { maxWaitTimeInMs: 30_000 }),
    () => bus.deadLetters("prices").receiveMessages(1, { maxWaitTimeInMs: 30_000 }),
  ]) {
    const error = await expectError("GeneralError", attempt());
    expect("whether the error has the reason", error.message.startsWith("InvalidOperationError"), true);
  }
  await expectCounts(bus, "prices/Subscriptions/all", { active: 0 });
}

/** A topic or subscription that does not exist, and a subscription of a queue. */
async function not_found(bus) {
  await expectError("MessagingEntityNotFound", bus.send("missing", { body: "lost" }));
  for (const [topic, subscription] of [
    ["missing", "all"],
    ["prices", "missing"],
    ["orders", "all"],
  ]) {
    const receiver = () => bus.subscriber(topic, subscription);
    await expectError("MessagingEntityNotFound", receiver().receiveMessages(1, { maxWaitTimeInMs: 30_000 }));
    await expectError("MessagingEntityNotFound", receiver().peekMessages(1));
  }
}

/** A message with a price, and perhaps a region. */
function price(body, value, region) {
  return { body, applicationProperties: region === undefined ? { price: value } : { price: value, region } };
}

module.exports = {
  fans_out,
  filtered,
  actions,
  settled,
  dead_letters,
  scheduled,
  expires,
  expires_by_default,
  evaluation_errors,
  forwards,
  duplicates,
  addresses,
  wrong_direction,
  not_found,
};
