/** The parameters of a case: a client of the SDK, and the emulator's control API. */
"use strict";

const { deepStrictEqual } = require("node:assert");
const { AsyncLocalStorage } = require("node:async_hooks");
const { setTimeout: pause } = require("node:timers/promises");

const { ServiceBusAdministrationClient, ServiceBusClient } = require("@azure/service-bus");
const Long = require("long");

// Long enough for a busy machine, short enough to detect a hang.
const WAIT_MILLISECONDS = 45_000;
// The time that the SDK waits for a message that must not arrive.
const NOTHING_MILLISECONDS = 300;

// Retryable errors (service-bus-messaging-exceptions), by the SDK's codes of
// the errors in the cases; others are not retryable.
const RETRYABLE = ["ServiceTimeout", "ServiceBusy", "InternalServerError"];
// Errors that this SDK retries nevertheless, because the key may have been changed meanwhile.
const RETRIED_NEVERTHELESS = ["UnauthorizedAccess"];

/** The settings of each case that runs. */
const environments = new AsyncLocalStorage();

/** The settings of the calling case, or those of the process if it runs only one case. */
function environment() {
  return environments.getStore() ?? process.env;
}

/** A namespace as the SDK sees it. */
class Bus {
  constructor(connectionString = environment().SERVICEBUS_CONNECTION_STRING, options = {}) {
    this.expiry = environment().SERVICEBUS_EXPIRY;
    this.locksOnDetach = environment().SERVICEBUS_LOCKS_ON_DETACH;
    this.client = new ServiceBusClient(connectionString, { ...transport(), ...options });
    this.control = environment().SERVICEBUS_CONTROL_URL.replace(/\/$/, "");
  }

  /** The same namespace through a client that does not retry. */
  tryingOnce(connectionString) {
    return new Bus(connectionString, { retryOptions: { maxRetries: 0 } });
  }

  /** The same namespace through a client with this timeout, which does not retry. */
  waiting(timeoutInMs) {
    return new Bus(undefined, { retryOptions: { maxRetries: 0, timeoutInMs } });
  }

  /** An administration client; it supports only TLS. */
  administration(connectionString = environment().SERVICEBUS_ADMIN_CONNECTION_STRING) {
    return new ServiceBusAdministrationClient(connectionString);
  }

  sender(queue) {
    return this.client.createSender(queue);
  }

  /** A receiver whose link attaches at the first receive; a peek does not attach it. */
  receiver(queue, options) {
    return this.client.createReceiver(queue, options);
  }

  deadLetters(queue, options) {
    return this.receiver(queue, { ...options, subQueueType: "deadLetter" });
  }

  transferDeadLetters(queue, options) {
    return this.receiver(queue, { ...options, subQueueType: "transferDeadLetter" });
  }

  /** A receiver of a subscription. */
  subscriber(topic, subscription, options) {
    return this.client.createReceiver(topic, subscription, options);
  }

  /** Accepts a session and resolves to its receiver. */
  session(queue, sessionId, options) {
    return this.client.acceptSession(queue, sessionId, options);
  }

  /** Accepts the next available session; the client waits for it as long as for any response. */
  nextSession(queue, options) {
    return this.client.acceptNextSession(queue, options);
  }

  /** A receiver of one session of a subscription. */
  subscriberSession(topic, subscription, sessionId, options) {
    return this.client.acceptSession(topic, subscription, sessionId, options);
  }

  ruleManager(topic, subscription) {
    return this.client.createRuleManager(topic, subscription);
  }

  /** Sends the messages, or lists of messages, to a queue or topic one by one and closes the sender. */
  async send(queue, ...messages) {
    const sender = this.sender(queue);
    for (const message of messages) {
      await sender.sendMessages(message);
    }
    await sender.close();
  }

  /** Advances the namespace's clock, and resolves when everything that is due by then has been processed. */
  async advance(seconds) {
    await this.request("clock/advance", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ seconds }),
    });
  }

  /** The emulator's counts of an entity, without a link to the entity. */
  async counts(entity) {
    return this.request(`counts?entity=${encodeURIComponent(entity)}`);
  }

  /** Changes these properties of a queue and keeps the others. */
  async configure(queue, properties) {
    await this.request(`queues/${queue}`, { method: "PUT", body: JSON.stringify(properties) });
  }

  async delete(queue) {
    await this.request(`queues/${queue}`, { method: "DELETE" });
  }

  async request(path, options) {
    const answer = await fetch(`${this.control}/${path}`, options);
    const text = await answer.text();
    if (!answer.ok) {
      throw new Error(`${path}: ${answer.status} ${text}`);
    }
    return JSON.parse(text || "null");
  }

  async close() {
    await this.client.close();
  }
}

/** How a client connects; `authorities.js` sets the authorities that it trusts. */
function transport() {
  const overWebSocket = environment().SERVICEBUS_TRANSPORT === "websocket-tls";
  return overWebSocket ? { webSocketOptions: { webSocket: require("ws") } } : {};
}

/** All items of a listing, page by page. */
async function everything(listing) {
  const items = [];
  for await (const item of listing) {
    items.push(item);
  }
  return items;
}

/** Receives exactly `count` messages, or fails with the number received. */
async function receive(receiver, count = 1) {
  const messages = [];
  const deadline = Date.now() + WAIT_MILLISECONDS;
  while (messages.length < count && Date.now() < deadline) {
    const missing = count - messages.length;
    messages.push(...(await receiver.receiveMessages(missing, { maxWaitTimeInMs: WAIT_MILLISECONDS })));
  }
  expect("number of messages received", messages.length, count);
  return messages;
}

/** Asserts that a receive gets no message. */
async function receiveNothing(receiver) {
  const messages = await receiver.receiveMessages(1, { maxWaitTimeInMs: NOTHING_MILLISECONDS });
  expect("messages received", messages.map(text), []);
}

/** Completes the messages, in their order. */
async function completeAll(receiver, messages) {
  for (const message of messages) {
    await receiver.completeMessage(message);
  }
}

/** Returns the result of a promise, or fails after a timeout. */
async function within(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come in time`)), WAIT_MILLISECONDS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Waits until a condition holds. */
async function until(what, holds) {
  const deadline = Date.now() + WAIT_MILLISECONDS;
  while (!holds()) {
    if (Date.now() >= deadline) {
      throw new Error(`${what} did not come in time`);
    }
    await pause(20);
  }
}

/** Waits until the emulator's counts of an entity have these values. */
async function expectCounts(bus, entity, expected) {
  const deadline = Date.now() + WAIT_MILLISECONDS;
  for (;;) {
    const counts = await bus.counts(entity);
    const seen = Object.fromEntries(Object.keys(expected).map((name) => [name, counts[name]]));
    if (JSON.stringify(seen) === JSON.stringify(expected)) {
      return;
    }
    if (Date.now() >= deadline) {
      expect(`counts of ${entity}`, seen, expected);
    }
    await pause(20);
  }
}

/** Fails with both values if they differ. */
function expect(what, actual, expected) {
  deepStrictEqual(actual, expected, differ(what, actual, expected));
}

function differ(what, actual, expected) {
  const { inspect } = require("node:util");
  return `${what}: expected ${inspect(expected, { depth: 6 })}, got ${inspect(actual, { depth: 6 })}`;
}

/** Asserts that the promise rejects with the SDK's error of this code, and that its `retryable` is correct. */
async function expectError(code, promise) {
  let outcome = "no error";
  try {
    await promise;
  } catch (error) {
    if (error.name === "ServiceBusError" && error.code === code) {
      // A general error has the name of its condition before its text.
      const name = code === "GeneralError" ? error.message.split(":")[0] : code;
      const isRetried = RETRYABLE.includes(name) || RETRIED_NEVERTHELESS.includes(name);
      expect(`whether the SDK tries ${error} again`, error.retryable, isRetried);
      return error;
    }
    outcome = `${error.name} ${error.code}: ${error.message}`;
  }
  throw new Error(`expected ServiceBusError ${code}, got ${outcome}`);
}

/** Asserts that a time is between 30 s and a minute from now. */
function expectFreshLock(instant) {
  const remaining = instant.getTime() - Date.now();
  if (remaining <= 30_000 || remaining > 61_000) {
    throw new Error(`a fresh lock of one minute has ${remaining} ms left by the client's clock`);
  }
}

/** A time from now, by the clock of this process. */
function later(seconds) {
  return new Date(Date.now() + seconds * 1000);
}

/** A sequence number as the SDK takes it. */
function number(value) {
  return Long.fromNumber(value);
}

/** Converts a body of bytes or a string to text. */
function text(message) {
  return Buffer.isBuffer(message.body) ? message.body.toString() : message.body;
}

module.exports = {
  Bus,
  NOTHING_MILLISECONDS,
  completeAll,
  environment,
  environments,
  everything,
  expect,
  expectCounts,
  expectError,
  expectFreshLock,
  later,
  number,
  receive,
  receiveNothing,
  text,
  until,
  within,
};
