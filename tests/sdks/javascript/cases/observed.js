/**
 * Observed behaviour of the service, by the numbers of `tests/conformance/OBSERVED.md`.
 *
 * Source: spec/observed.md.
 */
"use strict";

const { expect, expectError, later, receive } = require("../bus");

/** With receive-and-delete a message has empty delivery annotations; a locked one has its lock token there (4). */
async function deletes(bus) {
  await bus.send("orders", { body: "locked" }, { body: "deleted" });
  const receiver = bus.receiver("orders");
  const [locked] = await receive(receiver);
  expect("delivery annotations", Object.keys(locked._rawAmqpMessage.deliveryAnnotations), ["x-opt-lock-token"]);
  await receiver.completeMessage(locked);
  const [deleted] = await receive(bus.receiver("orders", { receiveMode: "receiveAndDelete" }));
  expect("delivery annotations", deleted._rawAmqpMessage.deliveryAnnotations, {});
}

/** A rule that exists is named as over HTTP (19). */
async function rule_that_exists(bus) {
  const adding = bus.ruleManager("prices", "all").createRule("$Default", { sqlExpression: "1=1" });
  const error = await expectError("MessagingEntityAlreadyExists", adding);
  const description = /^The messaging entity '\S+:Topic:prices\|all\|\$Default' already exists\./;
  expect(`whether the error has this text: ${error.message}`, description.test(error.message), true);
}

/** A dead-letter queue has no rules (23). */
async function rules_of_dead_letters(bus) {
  const rules = bus.ruleManager("prices", "all/$DeadLetterQueue");
  for (const asking of [rules.getRules(), rules.createRule("new", { subject: "s" }), rules.deleteRule("$Default")]) {
    const [outcome] = await Promise.allSettled([asking]);
    expect("outcome", [outcome.status, outcome.reason?.name], ["rejected", "ServiceBusError"]);
  }
  const kept = await bus.ruleManager("prices", "all").getRules();
  expect("rules of the subscription", kept.map(({ name }) => name), ["$Default"]);
}

/** The response has the number of deleted messages, until there are none (56). */
async function deletes_batches(bus) {
  await bus.send("orders", { body: 1 }, { body: 2 }, { body: 3 });
  const receiver = bus.receiver("orders");
  const deleted = () => receiver.deleteMessages({ maxMessageCount: 2, beforeEnqueueTime: later(60) });
  expect("deleted", [await deleted(), await deleted(), await deleted()], [2, 1, 0]);
  expect("left", await receiver.peekMessages(1), []);
}

/** A batch of more than the tier allows is rejected with the limit, and no message is deleted (36, 56). */
async function batches_too_large(bus) {
  await bus.send("orders", { body: "stays" });
  const deleting = bus.receiver("orders").deleteMessages({ maxMessageCount: 501, beforeEnqueueTime: later(60) });
  const error = await expectError("GeneralError", deleting);
  const limit = "Invalid Message Count : requested 501. Message count should be between 1 and 500.";
  expect(`whether the error has this text: ${error.message}`, error.message.includes(limit), true);
  expect("left", (await bus.receiver("orders").peekMessages(2)).length, 1);
}

/** Partitioned queues and subscriptions of partitioned topics delete no batches (36). */
async function batches_of_partitions(bus) {
  for (const receiver of [bus.receiver("partitioned"), bus.subscriber("partitions", "all")]) {
    const deleting = receiver.deleteMessages({ maxMessageCount: 1, beforeEnqueueTime: later(60) });
    await expectError("GeneralError", deleting);
  }
}

module.exports = {
  batches_of_partitions,
  batches_too_large,
  deletes,
  deletes_batches,
  rule_that_exists,
  rules_of_dead_letters,
};
