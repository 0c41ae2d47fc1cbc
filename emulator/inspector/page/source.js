// Where the page's data comes from: a running emulator, or what a failed test has left.

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

/** What a failed test has left: answers by their path. Nothing can be changed there. */
export class Recorded {
  recorded = true;

  /** @param {Record<string, any>} answers */
  constructor(answers) {
    this.answers = answers;
  }

  /** @param {string} method @param {string} path @param {Options} [options] @returns {Promise<any>} */
  async ask(method, path, { query = {} } = {}) {
    const key = query.entity === undefined ? path : `${path}?entity=${query.entity}`;
    const answer = method === "GET" ? this.answers[key] ?? this.answers[path] : undefined;
    if (answer === undefined) throw new Refused(405, "this is a record of a test that has ended: nothing can be asked or changed");
    return structuredClone(answer);
  }

  /** @param {string} _namespace @param {(frame: any) => void} _tell @param {(open: boolean) => void} state */
  follow(_namespace, _tell, state) {
    state(true);
    return () => {};
  }
}
