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
  #pages = new Pages();

  /** Asks the control API. @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
  async ask(method, path, { query = {}, body, signal } = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    const response = await fetch(`v1${path}${search && `?${search}`}`, {
      method,
      signal,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    }).catch((error) => {
      throw signal?.aborted ? error : new Error("The emulator does not answer.");
    });
    if (response.status === 204) return null;
    const text = await response.text();
    if (response.ok) return text && JSON.parse(text);
    throw new Refused(response.status, told(text, response.status));
  }

  /**
   * Follows the changes of a namespace until it is told to stop: by a stream, or by asking again and again where other pages of
   * this browser have had their streams for longer.
   * @param {string} namespace @param {(frame: any) => void} tell @param {(open: boolean, refusal?: string) => void} state
   */
  follow(namespace, tell, state) {
    const path = `v1/namespaces/${encodeURIComponent(namespace)}/changes`;
    const ended = new AbortController();
    /** @type {number | undefined} */
    let position;
    const heard = (/** @type {any} */ frame) => {
      position = frame.position;
      state(true);
      tell(frame);
    };
    const stream = async () => {
      const place = this.#pages.claim();
      const events = new EventSource(path);
      events.onmessage = (event) => heard(JSON.parse(event.data));
      events.onopen = () => state(true);
      const end = new Promise((resolve) => {
        events.onerror = () => {
          // What refuses a stream tells why when it is asked again.
          if (events.readyState === EventSource.CLOSED) resolve(null);
          else state(false);
        };
        ended.signal.addEventListener("abort", resolve);
        this.#pages.mayStream(place).then((may) => may || resolve(null));
      });
      await end;
      events.close();
      this.#pages.release(place);
    };
    const run = async () => {
      for (let first = true; !ended.signal.aborted; first = false) {
        if (first || await this.#pages.mayStream()) await stream();
        if (ended.signal.aborted) return;
        await look(path, position, ended.signal).then(heard, (error) => ended.signal.aborted || state(false, error instanceof Refused ? error.message : undefined));
        await new Promise((resolve) => setTimeout(resolve, ROUND));
      }
    };
    run();
    return () => ended.abort();
  }
}

/** Streams that the pages of a browser have: it opens six connections to a host, of which some are left for all other requests. */
const STREAMS = 3;
/** How long pages may take to say that they have one, in milliseconds. */
const ANSWERS = 200;
/** How long a page without a stream waits before it asks again, in milliseconds. */
const ROUND = 500;

/** The pages of this browser, which tell each other who has a stream. A claim is a number; the lowest is the oldest. */
class Pages {
  #channel = new BroadcastChannel("streams");
  #claims = new Set();
  /** Older streams of other pages, by the claim for which they were asked. @type {Map<number, number>} */
  #older = new Map();

  constructor() {
    this.#channel.onmessage = ({ data: { asks, answers } }) => {
      if (this.#older.has(answers)) this.#older.set(answers, Number(this.#older.get(answers)) + 1);
      for (const own of this.#claims) if (own < asks) this.#channel.postMessage({ answers: asks });
    };
  }

  claim(place = Date.now() + Math.random()) {
    this.#claims.add(place);
    return place;
  }

  /** @param {number} place */
  release(place) {
    this.#claims.delete(place);
  }

  /** Whether the one of this claim is among those that may have a stream; without one, whether one more may. */
  async mayStream(place = Date.now() + Math.random()) {
    this.#older.set(place, 0);
    this.#channel.postMessage({ asks: place });
    await new Promise((resolve) => setTimeout(resolve, ANSWERS));
    const older = Number(this.#older.get(place));
    this.#older.delete(place);
    return older < STREAMS;
  }
}

/** The first event of a stream, which is closed then: how things are now. @param {string} path @param {number | undefined} position @param {AbortSignal} signal */
async function look(path, position, signal) {
  const headers = position === undefined ? undefined : { "last-event-id": String(position) };
  const response = await fetch(path, { headers, signal });
  if (!response.ok || !response.body) throw new Refused(response.status, told(await response.text(), response.status));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let done = false; !done && !text.includes("\n\n");) {
    const part = await reader.read();
    done = part.done;
    text += part.value ?? "";
  }
  reader.cancel();
  const [, json] = /^data: (.*)$/m.exec(text) ?? [];
  if (!json) throw new Refused(response.status, "the stream has ended");
  return JSON.parse(json);
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
  const { contains = "", order, skip = 0, from = 0, limit = Infinity, state, where, body_contains = "", entity, message_id, sequence_number } = query;
  if (where) throw new Refused(400, "A report cannot be searched by SQL filters.");
  if (path === "/entities") {
    const found = whole.entities.filter((/** @type {any} */ it) => it.path.toLowerCase().includes(contains.toLowerCase()));
    if (order !== "dead-letter") found.sort((/** @type {any} */ a, /** @type {any} */ b) => (a.path < b.path ? -1 : 1));
    return { ...whole, entities: found.slice(0, limit), total: contains ? found.length : whole.total, next: undefined };
  }
  if (path === "/messages") {
    const found = whole.messages.filter((/** @type {any} */ it) => it.sequence_number >= from && (!state || it.state === state) && (it.preview ?? "").includes(body_contains));
    return { messages: found.slice(skip, skip + limit), next: found[skip + limit]?.sequence_number, total: state || body_contains ? found.length : whole.total };
  }
  if (path === "/timeline") {
    const number = sequence_number === undefined ? undefined : Number(sequence_number);
    const found = whole.events.filter((/** @type {any} */ it) => (entity === undefined || !it.entity || queueOf(it.entity) === queueOf(entity))
      && (number === undefined || it.sequence_number === number) && (message_id === undefined || !it.message_id || it.message_id === message_id));
    return { ...whole, events: found.slice(-limit), next: found.length > limit ? found[found.length - limit].position : undefined };
  }
  return whole;
}

/** @param {string} address */
function queueOf(address) {
  return parts(address)[0].toLowerCase();
}
