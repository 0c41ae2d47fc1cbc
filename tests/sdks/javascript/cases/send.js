/** Sending: one message, a list, a batch, and the properties that arrive at the receiver. */
"use strict";

const { expect, receive, text } = require("../bus");

/** One message per call arrives, in the order sent. */
async function single(bus) {
  await bus.send("orders", { body: "first" }, { body: Buffer.from("second") });
  await expectBodies(bus, ["first", "second"]);
}

/** Each message is sent when the previous one has been accepted. */
async function one_by_one(bus) {
  const sender = bus.sender("orders");
  for (let left = Number(process.env.SERVICEBUS_SENDS ?? 20); left > 0; left -= 1) {
    await sender.sendMessages({ body: Buffer.alloc(1024, "x") });
  }
  await sender.close();
}

/** A list is sent as one transfer, and its messages arrive separately. */
async function list_of_messages(bus) {
  const bodies = Array.from({ length: 5 }, (_, number) => `order ${number}`);
  await bus.send("orders", bodies.map((body) => ({ body })));
  await expectBodies(bus, bodies);
}

/** A batch accepts messages up to its size, reports when it is full, and arrives completely. */
async function batch(bus) {
  const sender = bus.sender("orders");
  const messages = await sender.createMessageBatch({ maxSizeInBytes: 4096 });
  while (messages.tryAddMessage({ body: Buffer.alloc(512, "x") }));
  if (messages.count < 5 || messages.count > 7) {
    throw new Error(`a batch of 4,096 bytes took ${messages.count} messages of 512 bytes`);
  }
  await sender.sendMessages(messages);
  await sender.close();
  await expectBodies(bus, Array(messages.count).fill("x".repeat(512)));
}

/** The receiver reads every property that an application can set on a message. */
async function properties(bus) {
  const instant = new Date("2024-02-29T12:30:15.250Z");
  const applicationProperties = {
    text: "größer",
    whole: 42,
    negative: -(2 ** 40),
    fraction: 0.5,
    flag: true,
    nothing: null,
  };
  const standard = {
    messageId: "order-17",
    contentType: "application/json",
    correlationId: "request-4",
    subject: "placed",
    to: "warehouse",
    replyTo: "confirmations",
    replyToSessionId: "cart-7",
    partitionKey: "eu",
  };
  const timeToLive = 5 * 60 * 1000;
  await bus.send("orders", {
    body: { total: 3 },
    timeToLive,
    applicationProperties: { ...applicationProperties, instant },
    ...standard,
  });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  for (const [name, value] of Object.entries(standard)) {
    expect(name, message[name], value);
  }
  // The SDK returns times as milliseconds since 1970.
  expect("application properties", message.applicationProperties, { ...applicationProperties, instant: instant.getTime() });
  expect("body", message.body, { total: 3 });
  expect("sequence number", message.sequenceNumber.toNumber(), 1);
  expect("enqueued sequence number", message.enqueuedSequenceNumber, undefined);
  expect("delivery count", message.deliveryCount, 0);
  expect("expiry", message.expiresAtUtc.getTime(), message.enqueuedTimeUtc.getTime() + timeToLive);
  expect("time to live", message.timeToLive, timeToLive);
  const age = Date.now() - message.enqueuedTimeUtc.getTime();
  if (age <= -1_000 || age >= 30_000) {
    throw new Error(`the message was enqueued ${age} ms ago by the client's clock`);
  }
  await receiver.completeMessage(message);
}

/** The broker generates an id for a message that has none (D30). */
async function without_id(bus) {
  await bus.send("orders", { body: "no id" });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  expect("id is 32 hex digits", /^[0-9a-f]{32}$/i.test(message.messageId), true);
  await receiver.completeMessage(message);
}

/** Bodies that are an AMQP value or sequences arrive unchanged, whatever they contain. */
async function body_kinds(bus) {
  const sent = [
    { bodyType: "value", body: { total: 3, lines: ["a", "b"] } },
    { bodyType: "sequence", body: [1, 2, "three"] },
    { bodyType: "data", body: Buffer.from([0, 255]) },
    { bodyType: "data", body: Buffer.alloc(0) },
  ];
  await bus.send("orders", ...sent);
  const receiver = bus.receiver("orders");
  for (const { bodyType, body } of sent) {
    const [message] = await receive(receiver);
    expect("kind of body", message._rawAmqpMessage.bodyType, bodyType);
    expect("body", message.body, body);
    await receiver.completeMessage(message);
  }
}

/** Footers and annotations are delivered, although the SDK writes a footer before the body (observed 1). */
async function annotated(bus) {
  await bus.send("orders", {
    bodyType: "data",
    body: Buffer.from("annotated"),
    deliveryAnnotations: { delivery: "d" },
    messageAnnotations: { message: "m" },
    footer: { footer: "f" },
  });
  const receiver = bus.receiver("orders");
  const [message] = await receive(receiver);
  const raw = message._rawAmqpMessage;
  expect("delivery annotation", raw.deliveryAnnotations.delivery, "d");
  expect("message annotation", raw.messageAnnotations.message, "m");
  expect("footer", raw.footer, { footer: "f" });
  expect("body", text(message), "annotated");
  await receiver.completeMessage(message);
}

/** Receives and completes all messages of the queue: these bodies in this order, numbered from 1. */
async function expectBodies(bus, bodies) {
  const receiver = bus.receiver("orders");
  const messages = await receive(receiver, bodies.length);
  expect("bodies", messages.map(text), bodies);
  const numbers = messages.map((message) => message.sequenceNumber.toNumber());
  expect("sequence numbers", numbers, bodies.map((_, index) => index + 1));
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
}

module.exports = { single, one_by_one, list_of_messages, batch, properties, without_id, body_kinds, annotated };
