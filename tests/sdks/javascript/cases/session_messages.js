/**
 * Messages of sessions: their strict order, and their state when a receiver does not complete them.
 *
 * Source: message-sessions, message-deferral, message-browsing, service-bus-dead-letter-queues.
 */
"use strict";

const {
  completeAll,
  expect,
  expectCounts,
  expectError,
  later,
  number,
  receive,
  receiveNothing,
  text,
} = require("../bus");
const { cart, expectErrorText } = require("./sessions");

/** An abandoned message is the next one again, before the later messages of its session. */
async function in_order(bus) {
  await bus.send("carts", ...["a", "b", "c", "d"].map((body) => cart("1", body)));
  const receiver = await bus.session("carts", "1");
  const [first] = await receive(receiver);
  await receiver.abandonMessage(first);
  const [a, b, c] = await receive(receiver, 3);
  expect("bodies", [a, b, c].map(text), ["a", "b", "c"]);
  await receiver.abandonMessage(c);
  await receiver.completeMessage(b);
  await receiver.abandonMessage(a);
  const messages = await receive(receiver, 3);
  const seen = messages.map((message) => [text(message), message.deliveryCount]);
  expect("bodies and delivery counts", seen, [
    ["a", 2],
    ["c", 1],
    ["d", 0],
  ]);
  await completeAll(receiver, messages);
}

/** A deferred message is received by its sequence number, by the receiver of its session. */
async function deferred(bus) {
  await bus.send("carts", cart("1", "a"), cart("1", "b"));
  const deferring = await bus.session("carts", "1");
  const [a, b] = await receive(deferring, 2);
  await deferring.deferMessage(a);
  await deferring.completeMessage(b);
  await receiveNothing(deferring);
  await deferring.close();
  await expectCounts(bus, "carts", { active: 1, deferred: 1, locked: 0 });
  const another = await bus.session("carts", "2");
  await expectError("MessageNotFound", another.receiveDeferredMessages(number(1)));
  const receiver = await bus.session("carts", "1");
  let [message] = await receiver.receiveDeferredMessages(number(1));
  expect("state", message.state, "deferred");
  await receiver.abandonMessage(message);
  [message] = await receiver.receiveDeferredMessages(number(1));
  expect("delivery count", message.deliveryCount, 2);
  await receiver.completeMessage(message);
  await expectCounts(bus, "carts", { active: 0, deferred: 0, locked: 0 });
}

/** A session that has only deferred messages is not the next available session. */
async function deferred_alone(bus) {
  await bus.send("carts", cart("1", "a"));
  const receiver = await bus.session("carts", "1");
  const [message] = await receive(receiver);
  await receiver.deferMessage(message);
  await receiver.close();
  const impatient = bus.waiting(2_000);
  await expectError("ServiceTimeout", impatient.nextSession("carts"));
  await impatient.close();
}

/** A session receiver peeks only at its session; other receivers peek at all sessions. */
async function peeked(bus) {
  await bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"));
  const receiver = await bus.session("carts", "1");
  const seen = (await receiver.peekMessages(10)).map((message) => [message.sequenceNumber.toNumber(), text(message)]);
  expect("messages of the session", seen, [
    [1, "a"],
    [3, "c"],
  ]);
  const [last] = await receiver.peekMessages(10, { fromSequenceNumber: number(2) });
  expect("from the second on", [text(last), last.sessionId], ["c", "1"]);
  // A peek without a sequence number continues after the last peek at the queue, by any receiver.
  const all = await bus.receiver("carts").peekMessages(10, { fromSequenceNumber: number(1) });
  expect("messages of the queue", all.map(text), ["a", "b", "c"]);
  await expectCounts(bus, "carts", { active: 3, locked: 0 });
}

/** Dead-lettered messages are received without a session, and keep its id. */
async function dead_lettered(bus) {
  await bus.send("carts", cart("1", "bad"), cart("2", "worse"));
  for (const sessionId of ["1", "2"]) {
    const receiver = await bus.session("carts", sessionId);
    const [message] = await receive(receiver);
    await receiver.deadLetterMessage(message, { deadLetterReason: "Rejected", deadLetterErrorDescription: "no total" });
  }
  const deadLetters = bus.deadLetters("carts");
  const messages = await receive(deadLetters, 2);
  const seen = messages.map((message) => [text(message), message.sessionId, message.deadLetterReason]);
  expect("dead letters", seen, [
    ["bad", "1", "Rejected"],
    ["worse", "2", "Rejected"],
  ]);
  await deadLetters.renewMessageLock(messages[0]);
  await completeAll(deadLetters, messages);
  await expectCounts(bus, "carts", { active: 0, dead_letter: 0 });
}

/** After its last delivery a message leaves the session to the next messages. */
async function abandons_to_the_limit(bus) {
  await bus.send("limited-carts", cart("1", "poison"), cart("1", "good"));
  const receiver = await bus.session("limited-carts", "1");
  for (const deliveries of [0, 1]) {
    const [message] = await receive(receiver);
    expect("delivered", [text(message), message.deliveryCount], ["poison", deliveries]);
    await receiver.abandonMessage(message);
  }
  const [good] = await receive(receiver);
  expect("body", text(good), "good");
  await receiver.completeMessage(good);
  const deadLetters = bus.deadLetters("limited-carts");
  const [dead] = await receive(deadLetters);
  expect("reason", dead.deadLetterReason, "MaxDeliveryCountExceeded");
  await deadLetters.completeMessage(dead);
}

/** A session queue rejects a message without a session id, and a batch that contains one. */
async function without_id(bus) {
  const sender = bus.sender("carts");
  await expectNoSessionId(sender.sendMessages({ body: "lost" }));
  await expectNoSessionId(sender.sendMessages([cart("1", "with"), { body: "without" }]));
  await expectNoSessionId(sender.scheduleMessages({ body: "later" }, later(60)));
  await expectCounts(bus, "carts", { active: 0, scheduled: 0, dead_letter: 0 });
}

/** A topic accepts a message without a session id, and a session subscription dead-letters it. */
async function without_id_at_subscription(bus) {
  await bus.send("steps", { body: "stray" }, cart("1", "a"));
  await expectCounts(bus, "steps/Subscriptions/all", { active: 2, dead_letter: 0 });
  await expectCounts(bus, "steps/Subscriptions/by-cart", { active: 1, dead_letter: 1 });
  await expectDeadWithoutSessionId(bus.subscriber("steps", "by-cart", { subQueueType: "deadLetter" }));
}

/** A forwarded message joins its session, or is dead-lettered if it has none. */
async function forwarded(bus) {
  await bus.send("inbox", cart("1", "a"), { body: "stray" });
  const receiver = await bus.session("carts", "1");
  const [message] = await receive(receiver);
  expect("body", text(message), "a");
  await receiver.completeMessage(message);
  await expectDeadWithoutSessionId(bus.deadLetters("carts"));
}

/** A scheduled message joins its session when it becomes active. */
async function scheduled(bus) {
  const sender = bus.sender("carts");
  await sender.scheduleMessages([cart("1", "asked"), cart("2", "another's")], later(300));
  await sender.sendMessages(cart("1", "annotated", { scheduledEnqueueTimeUtc: later(200) }));
  await expectCounts(bus, "carts", { active: 0, scheduled: 3 });
  const early = await bus.session("carts", "1");
  await receiveNothing(early);
  await early.close();
  await bus.advance(301);
  const receiver = await bus.nextSession("carts");
  expect("session id", receiver.sessionId, "1");
  const messages = await receive(receiver, 2);
  expect("bodies", messages.map(text), ["annotated", "asked"]);
  await completeAll(receiver, messages);
  await expectCounts(bus, "carts", { active: 1, scheduled: 0 });
}

/** A message of a session expires like any other, and the following ones are delivered next. */
async function expires(bus) {
  await bus.send("carts", cart("1", "old", { timeToLive: 30_000 }), cart("1", "new"));
  await bus.advance(31);
  const receiver = await bus.session("carts", "1");
  const [message] = await receive(receiver);
  expect("body", text(message), "new");
  await receiver.completeMessage(message);
  const deadLetters = bus.deadLetters("carts");
  const [dead] = await receive(deadLetters);
  expect("reason", dead.deadLetterReason, "TTLExpiredException");
  await deadLetters.completeMessage(dead);
}

/** A reply arrives in the session that the request specifies. */
async function replies(bus) {
  await bus.send("carts", cart("requests", "ask", { replyTo: "carts", replyToSessionId: "answers-7" }));
  const requests = await bus.session("carts", "requests");
  const [request] = await receive(requests);
  await bus.send(request.replyTo, cart(request.replyToSessionId, "answer"));
  await requests.completeMessage(request);
  const answers = await bus.session("carts", "answers-7");
  const [answer] = await receive(answers);
  expect("body", text(answer), "answer");
  expect("session to reply to", answer.replyToSessionId, undefined);
  await answers.completeMessage(answer);
}

/** The error for a message without a session id. */
async function expectNoSessionId(refused) {
  const error = await expectError("GeneralError", refused);
  expectErrorText(error, "The SessionId was not set on a message, and it cannot be sent to the entity.");
}

/** Receives the only dead-lettered message, which has no session id. */
async function expectDeadWithoutSessionId(receiver) {
  const [message] = await receive(receiver);
  expect("body", text(message), "stray");
  expect("session id", message.sessionId, undefined);
  expect("reason", message.deadLetterReason, "Session ID is null.");
  expect(
    "description",
    message.deadLetterErrorDescription,
    "Session enabled entity doesn't allow a message whose session identifier is null.",
  );
  await receiver.completeMessage(message);
}

module.exports = {
  abandons_to_the_limit,
  dead_lettered,
  deferred,
  deferred_alone,
  expires,
  forwarded,
  in_order,
  peeked,
  replies,
  scheduled,
  without_id,
  without_id_at_subscription,
};
