/** `test` with a fixture: a test that names `servicebus` has a bus of its own, which is gone when the test is. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";

import { test as base, expect, inject } from "vitest";

export const TOPOLOGY = new URL("topology.json", import.meta.url);
const PATIENCE_MILLISECONDS = 5_000;

/** A bus: what an SDK needs to reach it, its time, its faults, and what happened in it. */
export class ServiceBus {
  /**
   * @param {string} control
   * @param {string} connectionString
   */
  constructor(control, connectionString) {
    this.control = control;
    this.connectionString = connectionString;
  }

  /**
   * Moves the time of this bus; all that falls due on the way has happened when this resolves.
   * @param {number} seconds
   */
  async advance(seconds) {
    await ask("POST", `${this.control}/clock/advance`, JSON.stringify({ seconds }));
  }

  /**
   * Lets an operation go wrong: the first that is like `which`, as the emulator's README lists it.
   * @param {string} operation
   * @param {string | object} effect
   * @param {object} which
   */
  async fault(operation, effect, which = {}) {
    await ask("POST", `${this.control}/faults`, JSON.stringify({ operation, effect, ...which }));
  }

  /**
   * How many messages there are: `active`, `dead_letter`, `locked`, `scheduled` and others.
   * @param {string} entity
   * @returns {Promise<Record<string, number>>}
   */
  async counts(entity) {
    return ask("GET", `${this.control}/counts?${new URLSearchParams({ entity })}`);
  }

  /**
   * What happened to a message, oldest first.
   * @param {string} entity
   * @param {string} messageId
   * @returns {Promise<{ offset: number, kind: string, reason: string?, detail: string? }[]>}
   */
  async timeline(entity, messageId) {
    const query = new URLSearchParams({ entity, message_id: messageId });
    return (await ask("GET", `${this.control}/timeline?${query}`)).events;
  }

  /**
   * Waits until a message was dead-lettered for a reason; if it never is, tells what happened to it instead.
   * @param {string} queue
   * @param {string} messageId
   * @param {string} reason
   */
  async expectDeadLettered(queue, messageId, reason) {
    const deadline = Date.now() + PATIENCE_MILLISECONDS;
    for (;;) {
      const events = await this.timeline(queue, messageId);
      if (events.some((event) => event.kind === "dead-lettered" && event.reason === reason)) return;
      if (Date.now() > deadline) {
        const story = events.map(told).join("\n");
        expect.fail(`${queue}: ${messageId} is not dead-lettered for ${reason}\n${story}`);
      }
      await new Promise((resume) => setTimeout(resume, 50));
    }
  }
}

/**
 * An event as a line: when, what, and why.
 * @param {{ offset: number, kind: string, reason: string?, detail: string? }} event
 */
function told({ offset, kind, reason, detail }) {
  return `  +${offset.toFixed(3).padStart(9)} s  ${kind.padEnd(15)}  ${reason ?? detail ?? ""}`.trimEnd();
}

/**
 * Asks the control API; what is refused fails with the reason.
 * @param {string} method
 * @param {string} url
 * @param {string} [body]
 */
export async function ask(method, url, body) {
  const answer = await fetch(url, { method, body, headers: { "content-type": "application/json" } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url}: ${text}`);
  return text && JSON.parse(text);
}

export const test = base.extend({
  /** A bus with the entities of `topology.json`. */
  servicebus: async ({}, use) => {
    const control = `${inject("namespaces")}/test-${randomUUID()}`;
    const namespace = await ask("PUT", control, await readFile(TOPOLOGY, "utf8"));
    await use(new ServiceBus(control, namespace.connection_string));
    await ask("DELETE", control);
  },
});
