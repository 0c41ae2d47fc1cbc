/**
 * Sessions: accepted by their ids or as the next one, by one receiver at a time.
 *
 * Source: message-sessions, and D10 for which one is next. `carts`, `limited-carts`, of two deliveries, and
 * `quick-carts`, whose locks last twelve seconds, require sessions; `inbox` forwards to `carts`; `steps` has
 * the subscriptions `by-cart`, which requires sessions, and `all`, which does not; `orders` is plain.
 */
"use strict";

const { setTimeout: pause } = require("node:timers/promises");

const {
  NOTHING_MILLISECONDS,
  completeAll,
  expect,
  expectCounts,
  expectError,
  expectFreshLock,
  receive,
  receiveNothing,
  text,
  within,
} = require("../bus");

/** A session is accepted by its id, and delivers only its own messages. */
async function by_id(bus) {
  await bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"));
  const receiver = await bus.session("carts", "1");
  expect("session id", receiver.sessionId, "1");
  expectFreshLock(receiver.sessionLockedUntilUtc);
  const messages = await receive(receiver, 2);
  expect("bodies", messages.map(text), ["a", "c"]);
  expect("session ids", messages.map((message) => message.sessionId), ["1", "1"]);
  await expectCounts(bus, "carts", { active: 3, locked: 2 });
  await completeAll(receiver, messages);
  await receiveNothing(receiver);
  await expectCounts(bus, "carts", { active: 1, locked: 0 });
}

/** An empty session is accepted by its id, and delivers messages that arrive later. */
async function empty(bus) {
  const receiver = await bus.session("carts", "1");
  await receiveNothing(receiver);
  await bus.send("carts", cart("2", "another's"), cart("1", "late"));
  const [message] = await receive(receiver);
  expect("body", text(message), "late");
  await receiver.completeMessage(message);
}

/** The next available session is the unlocked one whose first message is the oldest. */
async function next_available(bus) {
  await bus.send("carts", cart("2", "a"), cart("1", "b"), cart("2", "c"));
  const first = await bus.nextSession("carts");
  const second = await bus.nextSession("carts");
  for (const [receiver, sessionId, expected] of [
    [second, "1", ["b"]],
    [first, "2", ["a", "c"]],
  ]) {
    expect("session id", receiver.sessionId, sessionId);
    expectFreshLock(receiver.sessionLockedUntilUtc);
    const messages = await receive(receiver, expected.length);
    expect(`bodies of session ${sessionId}`, messages.map(text), expected);
    await completeAll(receiver, messages);
  }
  await expectCounts(bus, "carts", { active: 0, locked: 0 });
}

/** A receiver waits until a session is available. */
async function waits_for_next(bus) {
  const opening = bus.nextSession("carts");
  const first = await Promise.race([opening, pause(NOTHING_MILLISECONDS)]);
  expect("a receiver that got a session", first, undefined);
  await bus.send("carts", cart("1", "late"));
  const receiver = await within("a session", opening);
  expect("session id", receiver.sessionId, "1");
  const [message] = await receive(receiver);
  expect("body", text(message), "late");
  await receiver.completeMessage(message);
}

/** A receiver that gets no session gets an error after its timeout. */
async function times_out(bus) {
  await bus.send("carts", cart("1", "taken"));
  await bus.session("carts", "1");
  const impatient = bus.waiting(2_000);
  const begin = Date.now();
  const error = await expectError("ServiceTimeout", impatient.nextSession("carts"));
  const waited = Date.now() - begin;
  expectErrorText(error, "The operation did not complete within the allotted timeout of 00:00:0");
  // The SDK requests a little less; the broker's default of 65 seconds would be too long for the case.
  if (waited < 1_800) {
    throw new Error(`the error arrived after ${waited} ms instead of two seconds`);
  }
  await impatient.close();
}

/** A receiver that stops waiting leaves the session to the next one; this SDK does so when it gets the session. */
async function cancelled(bus) {
  const controller = new AbortController();
  const opening = bus.nextSession("carts", { abortSignal: controller.signal });
  const first = await Promise.race([opening, pause(NOTHING_MILLISECONDS)]);
  expect("a receiver that got a session", first, undefined);
  controller.abort();
  const waiting = bus.nextSession("carts");
  await bus.send("carts", cart("1", "late"));
  const name = await within("an error", opening.then(() => "no error", (error) => error.name));
  expect("error", name, "AbortError");
  const receiver = await within("a session", waiting);
  const [message] = await receive(receiver);
  expect("delivered", [text(message), message.deliveryCount], ["late", 0]);
  await receiver.completeMessage(message);
}

/** A session has one receiver at a time. */
async function taken(bus) {
  const holder = await bus.session("carts", "1");
  await expectNotAccepted(bus.session("carts", "1"));
  await holder.close();
  const receiver = await bus.session("carts", "1");
  expect("session id", receiver.sessionId, "1");
}

/** A closed receiver unlocks its session at once, and unsettled messages are delivered again, uncounted. */
async function closed(bus) {
  await bus.send("carts", ...["a", "b", "c"].map((body) => cart("1", body)));
  const closing = await bus.session("carts", "1");
  await receive(closing, 2);
  await expectCounts(bus, "carts", { active: 3, locked: 2 });
  await closing.close();
  await expectCounts(bus, "carts", { active: 3, locked: 0 });
  const receiver = await bus.nextSession("carts");
  const messages = await receive(receiver, 3);
  expect("bodies", messages.map(text), ["a", "b", "c"]);
  expect("delivery counts", messages.map((message) => message.deliveryCount), [0, 0, 0]);
  await completeAll(receiver, messages);
}

/** Receivers of different sessions work at the same time and do not get each other's messages. */
async function side_by_side(bus) {
  await bus.send("carts", ...numbered(9));
  const receivers = await Promise.all([1, 2, 3].map(() => bus.nextSession("carts")));
  receivers.sort((a, b) => a.sessionId.localeCompare(b.sessionId));
  for (let turn = 0; turn < 3; turn += 1) {
    for (const [session, receiver] of receivers.entries()) {
      const [message] = await receive(receiver);
      expect("body", text(message), `${3 * turn + session}`);
      await receiver.completeMessage(message);
    }
  }
  await expectCounts(bus, "carts", { active: 0, locked: 0 });
}

/** Handlers of several sessions get their own messages, in order, and each is completed automatically. */
async function streams(bus) {
  await bus.send("carts", ...numbered(9));
  const seen = { 0: [], 1: [], 2: [] };
  const handled = ["0", "1", "2"].map(async (sessionId) => {
    const receiver = await bus.nextSession("carts");
    await new Promise((resolve, reject) => {
      receiver.subscribe({
        processMessage: async (message) => {
          seen[receiver.sessionId].push(text(message));
          if (seen[receiver.sessionId].length === 3) {
            resolve();
          }
        },
        processError: async ({ error }) => reject(error),
      });
    });
    return sessionId;
  });
  await within("all messages", Promise.all(handled));
  expect("bodies by session", seen, { 0: ["0", "3", "6"], 1: ["1", "4", "7"], 2: ["2", "5", "8"] });
  await expectCounts(bus, "carts", { active: 0, locked: 0 });
}

/** A session receiver may use receive-and-delete. */
async function receive_and_delete(bus) {
  await bus.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"));
  const receiver = await bus.session("carts", "1", { receiveMode: "receiveAndDelete" });
  expect("bodies", (await receive(receiver, 2)).map(text), ["a", "c"]);
  await expectCounts(bus, "carts", { active: 1, locked: 0 });
}

/** A subscription may require sessions, whether or not others of the topic do. */
async function subscription(bus) {
  await bus.send("steps", cart("1", "a"), cart("2", "b"), cart("1", "c"));
  const receiver = await bus.subscriberSession("steps", "by-cart", "1");
  const messages = await receive(receiver, 2);
  expect("bodies of the session", messages.map(text), ["a", "c"]);
  await completeAll(receiver, messages);
  const neighbour = bus.subscriber("steps", "all");
  const copies = await receive(neighbour, 3);
  expect("bodies of the neighbour", copies.map(text), ["a", "b", "c"]);
  expect("session ids", copies.map((message) => message.sessionId), ["1", "2", "1"]);
  await completeAll(neighbour, copies);
  await expectCounts(bus, "steps/Subscriptions/by-cart", { active: 1 });
}

/** A session queue or subscription rejects receivers without a session. */
async function plain_receiver(bus) {
  const description =
    "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.";
  for (const receiver of [bus.receiver("carts"), bus.subscriber("steps", "by-cart")]) {
    expectErrorText(await expectError("GeneralError", receiver.receiveMessages(1, { maxWaitTimeInMs: 30_000 })), description);
  }
}

/** An entity without sessions rejects session receivers, and so does a dead-letter queue. */
async function on_plain_queue(bus) {
  for (const entity of ["orders", "steps/Subscriptions/all", "carts/$DeadLetterQueue"]) {
    const error = await expectError("GeneralError", bus.nextSession(entity));
    expectErrorText(error, "A sessionful message receiver cannot be created on an entity that does not require sessions.");
    await expectNotAccepted(bus.session(entity, "1"));
  }
}

/** A session id has at most 128 characters. */
async function long_id(bus) {
  const receiver = await bus.session("carts", "c".repeat(128));
  expect("session id", receiver.sessionId, "c".repeat(128));
  await expectNotAccepted(bus.session("carts", "c".repeat(129)));
}

/** A disabled queue detaches its session receivers and rejects new ones. */
async function disabled(bus) {
  const receiver = await bus.session("carts", "1");
  const lost = new Promise((resolve) => {
    receiver.subscribe({ processMessage: async () => {}, processError: async ({ error }) => resolve(error) });
  });
  await bus.configure("carts", { Status: "ReceiveDisabled" });
  await bus.send("carts", cart("1", "kept"));
  const expectDisabled = (refused) => expectError("MessagingEntityDisabled", refused);
  await expectDisabled(Promise.reject(await within("the end of the receiver", lost)));
  await expectDisabled(bus.nextSession("carts"));
  await expectNotAccepted(bus.session("carts", "1"));
  await bus.configure("carts", { Status: "Active" });
  const next = await bus.nextSession("carts");
  expect("session id", next.sessionId, "1");
}

/** A message of a session. */
function cart(sessionId, body, options) {
  return { body, sessionId, ...options };
}

/** Messages of three sessions in turn. */
function numbered(count) {
  return Array.from({ length: count }, (_, number) => cart(`${number % 3}`, `${number}`));
}

/** When a session is rejected by its id for any reason, this SDK reports that another client may have locked it. */
async function expectNotAccepted(accepting) {
  const error = await expectError("SessionCannotBeLocked", accepting);
  expectErrorText(error, "It may be locked by another receiver.");
}

/** Asserts that an error has this text. */
function expectErrorText(error, description) {
  if (!error.message.includes(description)) {
    throw new Error(`expected the text "${description}" in "${error.message}"`);
  }
}

module.exports = {
  by_id,
  cancelled,
  cart,
  closed,
  disabled,
  empty,
  expectErrorText,
  long_id,
  next_available,
  on_plain_queue,
  plain_receiver,
  receive_and_delete,
  side_by_side,
  streams,
  subscription,
  taken,
  times_out,
  waits_for_next,
};
