/**
 * The administration client: entities and rules are created, read, listed, updated and deleted.
 *
 * Source: the SDK's own tests of its client, spec/admin-http.md. It uses TLS only, with the
 * emulator's certificate.
 */
"use strict";

const { environment, everything, expect, later, receive, text } = require("../bus");

const FOREVER = "P10675199DT2H48M5.4775807S";

/** The properties of the namespace. */
async function namespace(bus) {
  const shown = await bus.administration().getNamespaceProperties();
  expect("namespace", [shown.name, shown.messagingSku], ["sbemulatorns", "Standard"]);
}

/** A queue has the properties it was created with, also if its name contains a slash. */
async function queues(bus) {
  const admin = bus.administration();
  const settings = {
    lockDuration: "PT13S",
    maxSizeInMegabytes: 3072,
    requiresDuplicateDetection: true,
    requiresSession: true,
    defaultMessageTimeToLive: "P7D",
    deadLetteringOnMessageExpiration: true,
    duplicateDetectionHistoryTimeWindow: "PT12M",
    maxDeliveryCount: 14,
    enableBatchedOperations: false,
    autoDeleteOnIdle: "PT10M",
    enablePartitioning: true,
    userMetadata: "a < b & 'c'",
    status: "Active",
    enableExpress: true,
  };
  const rule = { claimType: "SharedAccessKey", claimValue: "None", accessRights: ["Send", "Listen"], keyName: "mine" };
  const made = await admin.createQueue("eu/new", { ...settings, authorizationRules: [rule] });
  for (const shown of [made, await admin.getQueue("eu/new")]) {
    expect("name", shown.name, "eu/new");
    // Each of the 16 partitions has the requested size (observed 30).
    for (const [name, value] of Object.entries({ ...settings, maxSizeInMegabytes: 16 * 3072 })) {
      expect(name, shown[name], value);
    }
    const [kept] = shown.authorizationRules;
    expect("rule", [kept.keyName, kept.accessRights], ["mine", ["Send", "Listen"]]);
    expect("length of the key", kept.primaryKey.length, 44);
  }
  // Observed 25, 27: with sessions and auto-delete on idle, too.
  const beside = { requiresSession: true, autoDeleteOnIdle: "PT10M" };
  const forwarding = await admin.createQueue("to-orders", { forwardTo: "orders", ...beside });
  expect("what is beside", [forwarding.requiresSession, forwarding.autoDeleteOnIdle], [true, "PT10M"]);
  expect("target", forwarding.forwardTo.split("/").pop(), "orders");
  expect("names", await names(admin.listQueues()), ["eu/new", "failures", "orders", "to-orders"]);
  await admin.deleteQueue("eu/new");
  expect("names", await names(admin.listQueues()), ["failures", "orders", "to-orders"]);
}

/** Properties that were read can be changed and written back; properties that are left out are reset. */
async function changes(bus) {
  const admin = bus.administration();
  await admin.createQueue("new", { userMetadata: "m", forwardTo: "orders", requiresDuplicateDetection: true });
  const queue = await admin.getQueue("new");
  await admin.updateQueue({ ...queue, lockDuration: "PT2M", forwardTo: undefined, status: "SendDisabled" });
  const { lockDuration, forwardTo, status, userMetadata } = await admin.getQueue("new");
  expect("queue", [lockDuration, forwardTo, status, userMetadata], ["PT2M", undefined, "SendDisabled", "m"]);
  const topic = await admin.getTopic("prices");
  await admin.updateTopic({ ...topic, defaultMessageTimeToLive: "PT1M" });
  expect("topic", (await admin.getTopic("prices")).defaultMessageTimeToLive, "PT1M");
  const subscription = await admin.getSubscription("prices", "all");
  await admin.updateSubscription({ ...subscription, maxDeliveryCount: 3 });
  expect("subscription", (await admin.getSubscription("prices", "all")).maxDeliveryCount, 3);
}

/** Topics with subscriptions; deleting an entity deletes those that it contains. */
async function topics(bus) {
  const admin = bus.administration();
  await admin.createTopic("new", { supportOrdering: false, maxSizeInMegabytes: 2048 });
  const topic = await admin.getTopic("new");
  expect("topic", [topic.supportOrdering, topic.maxSizeInMegabytes], [false, 2048]);
  expect("for ever", topic.defaultMessageTimeToLive, FOREVER);
  const made = await admin.createSubscription("new", "One", { maxDeliveryCount: 3, requiresSession: true });
  expect("subscription", [made.subscriptionName, made.topicName, made.maxDeliveryCount], ["One", "new", 3]);
  expect("whether it has sessions", made.requiresSession, true);
  await admin.createSubscription("new", "two", { forwardTo: "orders" });
  const listed = await everything(admin.listSubscriptions("new"));
  expect("names", listed.map((one) => one.subscriptionName), ["One", "two"]);
  expect("count", (await admin.getTopicRuntimeProperties("new")).subscriptionCount, 2);
  await admin.deleteSubscription("new", "two");
  expect("whether it is there", await admin.subscriptionExists("new", "two"), false);
  expect("count", (await admin.getTopicRuntimeProperties("new")).subscriptionCount, 1);
  await admin.deleteTopic("new");
  expect("whether it is listed", (await names(admin.listTopics())).includes("new"), false);
}

/** Rules of every kind are returned as they were created. */
async function rules(bus) {
  const admin = bus.administration();
  const where = ["prices", "all"];
  const [first] = await everything(admin.listRules(...where));
  expect("default", shown(first), { name: "$Default", filter: { sqlExpression: "1=1" }, action: {} });
  const filter = { sqlExpression: "price > @p", sqlParameters: { "@p": 10 } };
  const action = { sqlExpression: "SET mark = @m", sqlParameters: { "@m": "x" } };
  await admin.createRule(...where, "sql", filter, action);
  const at = new Date("2020-07-05T11:12:13Z");
  const correlation = {
    subject: "l",
    sessionId: "s",
    applicationProperties: { s: "x", i: 5, f: 1.5, b: true, d: at },
  };
  await admin.createRule(...where, "correlation", correlation);
  expect("sql", shown(await admin.getRule(...where, "sql")), { name: "sql", filter, action });
  const read = await admin.getRule(...where, "correlation");
  expect("system", [read.filter.subject, read.filter.sessionId], ["l", "s"]);
  expect("properties", read.filter.applicationProperties, correlation.applicationProperties);
  await admin.updateRule(...where, { ...read, filter: { sqlExpression: "price = 1" } });
  expect("changed", (await admin.getRule(...where, "correlation")).filter.sqlExpression, "price = 1");
  await admin.deleteRule(...where, "$Default");
  expect("names", await names(admin.listRules(...where)), ["correlation", "sql"]);
  expect("whether it is there", await admin.ruleExists(...where, "$Default"), false);
}

/** More queues than fit in a page are all listed, each once. */
async function pages(bus) {
  const admin = bus.administration();
  const many = Array.from({ length: 203 }, (_, number) => `many-${String(number).padStart(3, "0")}`);
  for (const name of many) {
    await admin.createQueue(name);
  }
  const all = ["failures", ...many, "orders"];
  expect("names", await names(admin.listQueues()), all);
  expect("runtime properties", await names(admin.listQueuesRuntimeProperties()), all);
  const sizes = [];
  for await (const page of admin.listQueues().byPage({ maxPageSize: 90 })) {
    sizes.push(page.length);
  }
  expect("sizes", sizes, [90, 90, 25]);
}

/** The subscription counts dead-lettered messages, the topic counts scheduled ones. */
async function counts(bus) {
  const admin = bus.administration();
  const subscription = await admin.getSubscription("prices", "all");
  const expiring = { defaultMessageTimeToLive: "PT1M", deadLetteringOnMessageExpiration: true };
  await admin.updateSubscription({ ...subscription, ...expiring });
  await bus.send("prices", Array.from({ length: 62 }, () => ({ body: "m" })));
  await bus.advance(61);
  await bus.send("prices", { body: "active" }, { body: "later", scheduledEnqueueTimeUtc: later(3600) });
  const shown = await admin.getSubscriptionRuntimeProperties("prices", "all");
  const seen = [shown.activeMessageCount, shown.deadLetterMessageCount, shown.totalMessageCount];
  expect("subscription", seen, [1, 62, 63]);
  const listed = await everything(admin.listSubscriptionsRuntimeProperties("prices"));
  expect("in a list", listed.find((one) => one.subscriptionName === "all").deadLetterMessageCount, 62);
  const topic = await admin.getTopicRuntimeProperties("prices");
  expect("topic", topic.scheduledMessageCount, 1);
  expect("whether it holds something", topic.sizeInBytes > 0, true);
  await bus.send("orders", { body: "m" });
  const queue = await admin.getQueueRuntimeProperties("orders");
  expect("queue", [queue.activeMessageCount, queue.totalMessageCount], [1, 1]);
  const isOrdered = queue.createdAt < queue.modifiedAt && queue.modifiedAt < queue.accessedAt;
  expect("order", isOrdered, true);
}

/** A missing entity is not found, whatever the text of the error. */
async function missing(bus) {
  const admin = bus.administration();
  for (const call of [
    () => admin.getQueue("missing"),
    () => admin.getTopic("missing"),
    () => admin.getSubscription("missing", "all"),
    () => admin.getSubscription("prices", "missing"),
    () => admin.getRule("prices", "all", "missing"),
    () => admin.getQueueRuntimeProperties("missing"),
    () => admin.deleteQueue("missing"),
    () => admin.deleteSubscription("prices", "missing"),
    () => admin.deleteRule("prices", "all", "missing"),
    () => admin.createSubscription("missing", "new"),
  ]) {
    await fails("MessageEntityNotFoundError", call);
  }
  expect("whether they exist", [await admin.queueExists("missing"), await admin.queueExists("orders")], [false, true]);
  const queue = await admin.getQueue("orders");
  await admin.deleteQueue("orders");
  await fails("MessageEntityNotFoundError", () => admin.updateQueue(queue));
}

/** A name can be used once. */
async function conflicts(bus) {
  const admin = bus.administration();
  for (const call of [
    () => admin.createQueue("ORDERS"),
    () => admin.createTopic("orders"),
    () => admin.createQueue("prices"),
    () => admin.createSubscription("prices", "all"),
    () => admin.createRule("prices", "all", "$Default"),
  ]) {
    await fails("MessageEntityAlreadyExistsError", call);
  }
}

/** Invalid properties are rejected with the reason. */
async function refused(bus) {
  const admin = bus.administration();
  const filter = { sqlExpression: "price >" };
  for (const [call, description] of [
    [() => admin.createQueue("new", { lockDuration: "PT10M" }), "'5' minutes"],
    [() => admin.createQueue("new", { maxDeliveryCount: 0 }), "MaxDeliveryCount"],
    [() => admin.createQueue("new", { autoDeleteOnIdle: "PT1M" }), "AutoDeleteOnIdle"],
    [() => admin.createQueue("new", { forwardTo: "missing" }), "doesn't exist"],
    [() => admin.createQueue("new", { lockDuration: "soon" }), "ISO 8601"],
    [() => admin.createRule("prices", "all", "new", filter), "cannot be understood"],
  ]) {
    const error = await fails("ServiceError", call);
    expect(`whether the error has ${description}`, error.message.includes(description), true);
  }
  const queue = await admin.getQueue("orders");
  const error = await fails("ServiceError", () => admin.updateQueue({ ...queue, requiresSession: true }));
  expect("whether the error has the reason", error.message.includes("RequiresSession property of an existing Queue"), true);
  expect("whether it exists", await admin.queueExists("new"), false);
}

/** A client without a key cannot read or change entities. */
async function wrong_key(bus) {
  const right = environment().SERVICEBUS_ADMIN_CONNECTION_STRING;
  const stranger = bus.administration(right.replace("SAS_KEY_VALUE", "wrong"));
  await fails("UnauthorizedRequestError", () => stranger.getQueue("orders"));
  await fails("UnauthorizedRequestError", () => stranger.deleteQueue("orders"));
  await fails("UnauthorizedRequestError", () => stranger.createQueue("new"));
  const admin = bus.administration();
  expect("whether they exist", [await admin.queueExists("orders"), await admin.queueExists("new")], [true, false]);
}

/** Clients send to and receive from a created queue; a deleted queue no longer exists. */
async function used_at_once(bus) {
  const admin = bus.administration();
  await admin.createTopic("new");
  await admin.createSubscription("new", "one");
  await bus.send("new", { body: "m" });
  const receiver = bus.subscriber("new", "one");
  const [message] = await receive(receiver);
  expect("body", text(message), "m");
  await receiver.completeMessage(message);
  await receiver.close();
  expect("left", (await admin.getSubscriptionRuntimeProperties("new", "one")).totalMessageCount, 0);
}

/** A rule without the properties that it does not set, which the SDK shows as undefined. */
function shown({ name, filter, action }) {
  return JSON.parse(JSON.stringify({ name, filter, action }));
}

async function names(listing) {
  return (await everything(listing)).map((item) => item.name);
}

/** Returns the error of a call, which must have this code. */
async function fails(code, call) {
  let outcome = "no error";
  try {
    await call();
  } catch (error) {
    if (error.name === "RestError" && error.code === code) {
      return error;
    }
    outcome = `${error.name} ${error.code}: ${error.message}`;
  }
  throw new Error(`expected RestError ${code}, got ${outcome}`);
}

module.exports = {
  namespace,
  queues,
  changes,
  topics,
  rules,
  pages,
  counts,
  missing,
  conflicts,
  refused,
  wrong_key,
  used_at_once,
};
