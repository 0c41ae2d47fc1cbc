// Where the page's data comes from: a running emulator, or what a failed test has left.

import { parts } from "./format.js";

/** @typedef {{query?: Record<string, string | number | undefined>, body?: unknown, signal?: AbortSignal}} Options */

/** A request that was refused, in the emulator's own words. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The emulator that has sent the page. */
export class Live {
  recorded = false;

  /** Asks the control API. @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
  async ask(method, path, { query = {}, body, signal } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    const response = await fetch(`v1${path}${search && `?${search}`}`, {
      method,
      signal,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (response.status === 204) return null;
    const text = await response.text();
    if (response.ok) return text && JSON.parse(text);
    throw new Refused(response.status, told(text, response.status));
  }

  /**
   * Follows the changes of a namespace until it is told to stop.
   * @param {string} namespace @param {(frame: any) => void} tell @param {(open: boolean) => void} state
   */
  follow(namespace, tell, state) {
    const events = new EventSource(`v1/namespaces/${encodeURIComponent(namespace)}/changes`);
    events.onmessage = (event) => tell(JSON.parse(event.data));
    events.onopen = () => state(true);
    events.onerror = () => state(false);
    return () => events.close();
  }
}

/** @param {string} text @param {number} status */
function told(text, status) {
  try {
    const { error } = JSON.parse(text);
    const problems = (error.problems ?? []).map((/** @type {any} */ it) => `${it.path}: ${it.allowed}`);
    return [error.message, ...problems].join("; ");
  } catch {
    return text || `the emulator answered ${status}`;
  }
}

/**
 * @typedef {object} Told what a failed test has left
 * @property {string} test
 * @property {string | null} failure the text of the panic
 * @property {string} namespace
 * @property {string} place where to look first, as an address has it behind `#`
 * @property {Record<string, any>} answers of the control API, by path below the namespace and entity: `/messages?entity=orders`
 */

/** What a failed test has left. Nothing can be changed there. */
export class Recorded {
  recorded = true;

  /** @param {Told} told */
  constructor(told) {
    this.told = told;
  }

  /** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
  async ask(method, path, { query = {} } = {}) {
    const { namespace, answers } = this.told;
    if (path === "/namespaces") return [{ name: namespace }];
    const rest = path.slice(`/namespaces/${encodeURIComponent(namespace)}`.length);
    const { entity } = query;
    const whole = answers[entity === undefined || rest === "/timeline" ? rest : `${rest}?entity=${entity}`];
    if (method !== "GET") throw new Refused(405, "This is a record of a test that has ended: nothing changes any more.");
    if (whole === undefined) return absent(rest);
    return structuredClone(part(rest, whole, query));
  }

  /** @param {string} _namespace @param {(frame: any) => void} tell @param {(open: boolean) => void} state */
  follow(_namespace, tell, state) {
    const clock = this.told.answers["/clock"];
    // Later, as an emulator does: what is told must not be what asked for it.
    queueMicrotask(() => {
      state(true);
      tell({ position: 0, clock: clock && { ...clock, frozen: true }, counts: [], many: true });
    });
    return () => {};
  }
}

/** What stands for an answer that was not recorded. @param {string} path */
function absent(path) {
  if (path === "/messages") return { messages: [], total: 0 };
  if (path === "/receivers") return { receivers: [] };
  if (path === "/sessions") return { sessions: [] };
  throw new Refused(404, "The report does not have it.");
}

/** What an emulator would have answered of a whole. @param {string} path @param {any} whole @param {Record<string, any>} query */
function part(path, whole, query) {
  const { contains = "", order, skip = 0, limit = Infinity, state, where, body_contains = "", entity, message_id, sequence_number } = query;
  if (where) throw new Refused(400, "A report cannot be searched by SQL filters.");
  if (path === "/entities") {
    const found = whole.entities.filter((/** @type {any} */ it) => it.path.toLowerCase().includes(contains.toLowerCase()));
    if (order !== "dead-letter") found.sort((/** @type {any} */ a, /** @type {any} */ b) => (a.path < b.path ? -1 : 1));
    return { ...whole, entities: found.slice(0, limit), total: contains ? found.length : whole.total, next: undefined };
  }
  if (path === "/messages") {
    const found = whole.messages.filter((/** @type {any} */ it) => (!state || it.state === state) && (it.preview ?? "").includes(body_contains));
    return { messages: found.slice(skip, skip + limit), total: state || body_contains ? found.length : whole.total };
  }
  if (path === "/timeline") {
    const number = sequence_number === undefined ? undefined : Number(sequence_number);
    const found = whole.events.filter((/** @type {any} */ it) => (entity === undefined || !it.entity || queueOf(it.entity) === queueOf(entity))
      && (number === undefined || it.sequence_number === number) && (message_id === undefined || !it.message_id || it.message_id === message_id));
    return { ...whole, events: found.slice(-limit) };
  }
  return whole;
}

/** @param {string} address */
function queueOf(address) {
  return parts(address)[0].toLowerCase();
}
