/**
 * What the service was seen to do, by the numbers of `tests/conformance/OBSERVED.md`.
 *
 * Source: spec/observed.md.
 */
"use strict";

const { expect, expectError, receive } = require("../bus");

/** What is deleted as it is received has an empty map of delivery annotations, and what is locked its token there (4). */
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
  const words = /^The messaging entity '\S+:Topic:prices\|all\|\$Default' already exists\./;
  expect(`whether it says so: ${error.message}`, words.test(error.message), true);
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

module.exports = { deletes, rule_that_exists, rules_of_dead_letters };
