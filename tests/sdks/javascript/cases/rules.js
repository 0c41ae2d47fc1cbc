/**
 * The rules of a subscription, created, listed and deleted by its rule manager.
 *
 * Source: topic-filters, service-bus-amqp-request-response (add, remove and enumerate rules). The
 * subscriptions are those of the topics' cases.
 */
"use strict";

const { expect, expectCounts, expectError, receive, receiveNothing, text } = require("../bus");

/** A subscription starts with `$Default`; one in the configuration has its own rules instead. */
async function configured(bus) {
  expect("of all", await bus.ruleManager("prices", "all").getRules(), [
    { name: "$Default", filter: { sqlExpression: "1=1" }, action: {} },
  ]);
  expect("of cheap", await bus.ruleManager("prices", "cheap").getRules(), [
    { name: "below-ten", filter: { sqlExpression: "price < 10" }, action: {} },
  ]);
  const [{ name, filter }] = await bus.ruleManager("prices", "eu").getRules();
  expect("of eu", [name, stripped(filter)], [
    "of-the-eu",
    { subject: "changed", applicationProperties: { region: "eu" } },
  ]);
  const marked = await bus.ruleManager("alarms", "marked").getRules();
  expect("names", marked.map((rule) => rule.name).sort(), ["plain", "plain-too", "raised"]);
  expect("action", marked.find((rule) => rule.name === "raised").action, {
    sqlExpression: "SET level = level + 1; SET sys.Label = 'raised'; SET seen = TRUE; REMOVE secret",
  });
}

/** Added rules are listed as they were created, filters and actions with every type of value. */
async function enumerates(bus) {
  const rules = bus.ruleManager("prices", "all");
  const at = new Date("2026-01-02T03:04:05Z");
  const whole = {
    correlationId: "c",
    messageId: "m",
    to: "t",
    replyTo: "r",
    subject: "s",
    sessionId: "i",
    replyToSessionId: "ri",
    contentType: "text/plain",
    applicationProperties: { text: "x", number: 5, float: 1.5, yes: true, at },
  };
  const condition = "Price >= 10 AND [my region] LIKE 'e%'";
  await rules.createRule("by-price", { sqlExpression: condition });
  await rules.createRule("marked", { sqlExpression: "TRUE = TRUE" }, { sqlExpression: "SET seen = 1" });
  await rules.createRule("whole", whole);
  await rules.createRule("whole-marked", { subject: "s" }, { sqlExpression: "REMOVE price;" });
  const seen = {};
  for await (const rule of rules.listRules()) {
    seen[rule.name] = [stripped(rule.filter), rule.action];
  }
  expect("rules", seen, {
    $Default: [{ sqlExpression: "1=1" }, {}],
    "by-price": [{ sqlExpression: condition }, {}],
    marked: [{ sqlExpression: "TRUE = TRUE" }, { sqlExpression: "SET seen = 1" }],
    whole: [whole, {}],
    "whole-marked": [{ subject: "s" }, { sqlExpression: "REMOVE price;" }],
  });
}

/** They are listed in pages. */
async function pages(bus) {
  const rules = bus.ruleManager("prices", "all");
  for (let index = 0; index < 4; index += 1) {
    await rules.createRule(`rule-${index}`, { sqlExpression: `price = ${index}` });
  }
  const sizes = [];
  const names = new Set();
  for await (const page of rules.listRules().byPage({ maxPageSize: 2 })) {
    sizes.push(page.length);
    page.forEach((rule) => names.add(rule.name));
  }
  expect("sizes", sizes, [2, 2, 1]);
  expect("names", [...names].sort(), ["$Default", "rule-0", "rule-1", "rule-2", "rule-3"]);
}

/** Rules apply to messages that are sent later; without rules, no message arrives. */
async function takes_effect(bus) {
  const rules = bus.ruleManager("prices", "all");
  await bus.send("prices", price("before", 50));
  await rules.deleteRule("$Default");
  expect("rules", await rules.getRules(), []);
  await bus.send("prices", price("none", 50));
  await rules.createRule("dear", { sqlExpression: "price > 10" });
  await rules.createRule("greeting", { subject: "hello", applicationProperties: { price: 5 } });
  await bus.send("prices", price("dear", 11), price("cheap", 9), price("five", 5));
  await bus.send("prices", { ...price("greeting", 5), subject: "hello" });
  await bus.send("prices", { ...price("both", 5), subject: "Hello" });
  await rules.deleteRule("dear");
  await bus.send("prices", price("dear too late", 11));
  const receiver = bus.subscriber("prices", "all");
  const messages = await receive(receiver, 3);
  expect("received", messages.map(text), ["before", "dear", "greeting"]);
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
  await receiveNothing(receiver);
}

/** An action changes the copy of the message, which contains the name of the rule. */
async function action(bus) {
  const rules = bus.ruleManager("prices", "all");
  const change = "SET sys.Label = 'half'; SET price = price / 2; SET region = 'eu'; REMOVE secret";
  await rules.createRule("halved", { sqlExpression: "price >= 10" }, { sqlExpression: change });
  const sent = { body: "a", subject: "whole", applicationProperties: { price: 30, secret: "s" } };
  await bus.send("prices", sent);
  const receiver = bus.subscriber("prices", "all");
  const messages = await receive(receiver, 2);
  const copies = messages.map((message) => [message.subject, message.applicationProperties]);
  copies.sort((a, b) => a[1].price - b[1].price);
  expect("copies", copies, [
    ["half", { price: 15, region: "eu", RuleName: "halved" }],
    ["whole", { price: 30, secret: "s" }],
  ]);
  await expectCounts(bus, "prices/Subscriptions/all", { active: 2, locked: 2 });
}

/** A name can be used once; the existing rule stays unchanged. */
async function duplicate(bus) {
  const rules = bus.ruleManager("prices", "cheap");
  const adding = rules.createRule("below-ten", { sqlExpression: "1=1" });
  const error = await expectError("MessagingEntityAlreadyExists", adding);
  expect("whether the error has the position", error.message.includes("sbemulatorns:Topic:prices|cheap,"), true);
  const [{ filter }] = await rules.getRules();
  expect("filter", filter, { sqlExpression: "price < 10" });
}

/** A missing rule cannot be deleted. */
async function unknown(bus) {
  const rules = bus.ruleManager("prices", "all");
  await expectError("MessagingEntityNotFound", rules.deleteRule("missing"));
  await rules.deleteRule("$Default");
  await expectError("MessagingEntityNotFound", rules.deleteRule("$Default"));
}

/** A rule with an invalid filter or action is rejected, and the error has the position. */
async function malformed(bus) {
  const rules = bus.ruleManager("prices", "all");
  for (const [filter, ...action] of [
    [{ sqlExpression: "price <" }],
    [{ sqlExpression: "price = 'open" }],
    [{ sqlExpression: "sys.Nothing = 1" }],
    [{ sqlExpression: "" }],
    [{ sqlExpression: "1=1" }, { sqlExpression: "DROP price" }],
  ]) {
    const error = await expectError("GeneralError", rules.createRule("wrong", filter, ...action));
    expect("whether the error has the reason", error.message.startsWith("ArgumentError"), true);
  }
  expect("names", (await rules.getRules()).map((rule) => rule.name), ["$Default"]);
}

/** Only a subscription that exists has rules. */
async function not_found(bus) {
  for (const [topic, subscription] of [
    ["missing", "all"],
    ["prices", "missing"],
  ]) {
    await expectError("MessagingEntityNotFound", bus.ruleManager(topic, subscription).getRules());
  }
}

/** A filter without the properties that it does not set, which the broker shows as null or as an empty map. */
function stripped(filter) {
  const isOpen = (value) => value === undefined || value === null || Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => !isOpen(value)));
}

function price(body, value) {
  return { body, applicationProperties: { price: value } };
}

module.exports = {
  configured,
  enumerates,
  pages,
  takes_effect,
  action,
  duplicate,
  unknown,
  malformed,
  not_found,
};
