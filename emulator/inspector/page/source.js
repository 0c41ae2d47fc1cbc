// Where the page's data comes from: a running emulator, or the report of a failed test.

import { splitAddress } from "./format.js";

/** @typedef {{query?: Record<string, string | number | undefined>, body?: unknown, signal?: AbortSignal}} Options */

/** A request that was refused, with the emulator's message. */
export class RequestError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The emulator that serves the page. */
export class Live {
  recorded = false;
  #slots = new StreamSlots();

  /** Sends a request to the control API. @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
  async request(method, path, { query = {}, body, signal } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    const response = await fetch(`v1${path}${search && `?${search}`}`, {
      method,
      signal,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    }).catch((error) => {
      throw signal?.aborted ? error : new Error("The emulator is not responding.");
    });
    if (response.status === 204) return null;
    const text = await response.text();
    if (response.ok) return text && JSON.parse(text);
    throw new RequestError(response.status, errorMessage(text, response.status));
  }

  /**
   * Follows the changes of a namespace until the returned function is called: by a stream, or by polling while other pages of
   * this browser use all streams.
   * @param {string} namespace @param {(change: any) => void} onChange @param {(open: boolean, error?: string) => void} onState
   */
  follow(namespace, onChange, onState) {
    const path = `v1/namespaces/${encodeURIComponent(namespace)}/changes`;
    const controller = new AbortController();
    let lastId = "";
    const receive = (/** @type {{lastEventId: string, data: string}} */ event) => {
      // A closed stream may have an event left, which is of another namespace.
      if (controller.signal.aborted) return;
      lastId = event.lastEventId;
      onState(true);
      onChange(JSON.parse(event.data));
    };
    const stream = async () => {
      const claim = this.#slots.claim();
      const events = new EventSource(path);
      events.onmessage = receive;
      events.onopen = () => onState(true);
      const end = new Promise((resolve) => {
        // The error of an EventSource has no text; the next poll gets the reason.
        events.onerror = resolve;
        controller.signal.addEventListener("abort", resolve);
        this.#slots.isFree(claim).then((free) => free || resolve(null));
      });
      await end;
      events.close();
      this.#slots.release(claim);
    };
    const run = async () => {
      for (let first = true; !controller.signal.aborted; first = false) {
        if (first || await this.#slots.isFree()) await stream();
        if (controller.signal.aborted) return;
        await poll(path, lastId, controller.signal).then(receive, (error) => controller.signal.aborted || onState(false, error instanceof RequestError ? error.message : undefined));
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
      }
    };
    run();
    return () => controller.abort();
  }
}

/** The maximum number of streams per browser. A browser opens six connections to a host; the other requests need some of them. */
const MAX_STREAMS = 3;
/** How long a page waits for other pages to report their streams, in milliseconds. */
const CLAIM_TIMEOUT = 200;
/** The pause between two polls of a page without a stream, in milliseconds. */
const POLL_INTERVAL = 500;

/** Shares the streams between the pages of this browser. A claim is a number; the lowest is the oldest and takes precedence. */
class StreamSlots {
  #channel = new BroadcastChannel("streams");
  #claims = new Set();
  /** The number of other pages' older streams, by the claim that was checked. @type {Map<number, number>} */
  #older = new Map();

  constructor() {
    this.#channel.onmessage = ({ data: { asks, answers } }) => {
      if (this.#older.has(answers)) this.#older.set(answers, Number(this.#older.get(answers)) + 1);
      for (const own of this.#claims) if (own < asks) this.#channel.postMessage({ answers: asks });
    };
  }

  claim() {
    const claim = newClaim();
    this.#claims.add(claim);
    return claim;
  }

  /** @param {number} claim */
  release(claim) {
    this.#claims.delete(claim);
  }

  /** Returns whether this claim, or a new one, may have a stream. */
  async isFree(claim = newClaim()) {
    this.#older.set(claim, 0);
    this.#channel.postMessage({ asks: claim });
    await new Promise((resolve) => setTimeout(resolve, CLAIM_TIMEOUT));
    const older = Number(this.#older.get(claim));
    this.#older.delete(claim);
    return older < MAX_STREAMS;
  }
}

function newClaim() {
  return Date.now() + Math.random();
}

/** Reads the first event of a stream, then closes it. @param {string} path @param {string} lastId @param {AbortSignal} signal */
async function poll(path, lastId, signal) {
  const headers = lastId ? { "last-event-id": lastId } : undefined;
  const response = await fetch(path, { headers, signal });
  if (!response.ok || !response.body) throw new RequestError(response.status, errorMessage(await response.text(), response.status));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let done = false; !done && !text.includes("\n\n");) {
    const chunk = await reader.read();
    done = chunk.done;
    text += chunk.value ?? "";
  }
  reader.cancel();
  const [, lastEventId, data] = /^id: (.*)\ndata: (.*)$/m.exec(text) ?? [];
  if (!data) throw new RequestError(response.status, "The stream of changes ended without an event.");
  return { lastEventId, data };
}

/** @param {string} text @param {number} status */
function errorMessage(text, status) {
  try {
    const { error } = JSON.parse(text);
    const problems = (error.problems ?? []).map((/** @type {any} */ it) => `${it.path}: ${it.allowed}`);
    return [error.message, ...problems].join("; ");
  } catch {
    return text || `The emulator responded with status ${status}.`;
  }
}

/**
 * @typedef {object} Report the report of a failed test, which the harness writes
 * @property {string} test
 * @property {string | null} failure the message of the panic
 * @property {string} namespace
 * @property {string} fragment the route that the page opens first
 * @property {Record<string, any>} answers of the control API, by path below the namespace and entity: `/messages?entity=orders`
 */

/** The report of a failed test. It is read-only. */
export class Recorded {
  recorded = true;

  /** @param {Report} report */
  constructor(report) {
    this.report = report;
  }

  /** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
  async request(method, path, { query = {} } = {}) {
    const { namespace, answers } = this.report;
    if (path === "/namespaces") return [{ name: namespace }];
    const rest = path.slice(`/namespaces/${encodeURIComponent(namespace)}`.length);
    const { entity } = query;
    const whole = answers[entity === undefined || rest === "/timeline" ? rest : `${rest}?entity=${entity}`];
    if (method !== "GET") throw new RequestError(405, "The report of a failed test is read-only.");
    if (whole === undefined) return emptyAnswer(rest);
    return structuredClone(select(rest, whole, query));
  }

  /** @param {string} _namespace @param {(change: any) => void} onChange @param {(open: boolean) => void} onState */
  follow(_namespace, onChange, onState) {
    const clock = this.report.answers["/clock"];
    // Not at once, because the effect that called this function must not depend on the signals that the callbacks change.
    queueMicrotask(() => {
      onState(true);
      onChange({ position: 0, clock: clock && { ...clock, frozen: true }, counts: [], many: true });
    });
    return () => {};
  }
}

/** Returns the answer for data that was not recorded. @param {string} path */
function emptyAnswer(path) {
  if (path === "/messages") return { messages: [], total: 0 };
  if (path === "/receivers") return { receivers: [] };
  if (path === "/sessions") return { sessions: [] };
  throw new RequestError(404, "The report does not contain this data.");
}

/** Applies a query to a recorded answer as the emulator would. @param {string} path @param {any} whole @param {Record<string, any>} query */
function select(path, whole, query) {
  const { contains = "", order, skip = 0, from = 0, limit = Infinity, state, where, body_contains = "", entity, message_id, sequence_number } = query;
  if (where) throw new RequestError(400, "A report does not support SQL filters.");
  if (path === "/entities") {
    const found = whole.entities.filter((/** @type {any} */ it) => it.path.toLowerCase().includes(contains.toLowerCase()));
    if (order !== "dead-letter") found.sort((/** @type {any} */ a, /** @type {any} */ b) => (a.path < b.path ? -1 : 1));
    return { ...whole, entities: found.slice(0, limit), total: contains ? found.length : whole.total, next: undefined };
  }
  if (path === "/messages") {
    const matching = whole.messages.filter((/** @type {any} */ it) => (!state || it.state === state) && (it.preview ?? "").includes(body_contains));
    const found = matching.filter((/** @type {any} */ it) => it.sequence_number >= from);
    return { messages: found.slice(skip, skip + limit), next: found[skip + limit]?.sequence_number, total: state || body_contains ? matching.length : whole.total };
  }
  if (path === "/timeline") {
    const number = sequence_number === undefined ? undefined : Number(sequence_number);
    const found = whole.events.filter((/** @type {any} */ it) => (entity === undefined || !it.entity || entityOf(it.entity) === entityOf(entity))
      && (number === undefined || it.sequence_number === number) && (message_id === undefined || !it.message_id || it.message_id === message_id));
    const first = (/** @type {any[]} */ events) => events.slice(-limit)[0]?.position ?? Infinity;
    const counted = found.filter((/** @type {any} */ it) => message_id === undefined || it.message_id);
    const begin = first(counted);
    const others = message_id === undefined ? 0 : first(found.filter((/** @type {any} */ it) => !it.message_id));
    const events = found.filter((/** @type {any} */ it) => it.position >= (it.message_id ? begin : Math.max(begin, others)));
    return { ...whole, events, next: counted.length > limit ? begin : undefined };
  }
  return whole;
}

/** @param {string} address */
function entityOf(address) {
  return splitAddress(address)[0].toLowerCase();
}
