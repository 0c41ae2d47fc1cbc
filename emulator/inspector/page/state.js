// The state of the page: the namespaces, the selected one, and the changes in it.

import { computed, effect, signal } from "@preact/signals";
import { formatRoute, parseRoute, route } from "./route.js";
import { Live, Recorded, RequestError } from "./source.js";

/** @typedef {{active: number, dead_letter: number, transfer_dead_letter: number, scheduled: number, transfer: number, locked: number, deferred: number, size_bytes: number}} Counts */

const recorded = document.getElementById("recorded");
/** @type {{recorded: boolean, report?: import("./source.js").Report, request: Live["request"], follow: Live["follow"]}} */
export const source = recorded ? new Recorded(JSON.parse(recorded.textContent ?? "{}")) : new Live();

/** @type {import("@preact/signals").Signal<string[]>} */
export const namespaces = signal([]);
export const namespace = computed(() => route.value.namespace || namespaces.value[0] || "");

/** The last change that the emulator reported: the position in the timeline, the clock, and the next due event. */
export const lastChange = signal(/** @type {any} */ (null));
/** Counts that have changed since their entity was listed. */
export const counts = signal(/** @type {Record<string, Counts>} */ ({}));
/** Increases whenever views must repeat their requests. It is 0 until the page follows changes, so that it misses none. */
export const version = signal(0);
/** When the emulator stopped responding. */
export const offlineSince = signal(/** @type {number | null} */ (null));
/** Why the emulator refuses to report changes, while it answers other requests. */
export const changesError = signal(/** @type {string | null} */ (null));
/** The result of the last action. @typedef {{text: string, bad: boolean}} Notice */
export const notice = signal(/** @type {Notice | null} */ (null));

/** Requests a path of the namespace. @param {string} method @param {string} path @param {import("./source.js").Options} [options] */
export async function request(method, path, options) {
  try {
    const answer = await source.request(method, `/namespaces/${encodeURIComponent(namespace.value)}${path}`, options);
    offlineSince.value = null;
    return answer;
  } catch (error) {
    if (!(error instanceof RequestError) && !options?.signal?.aborted) offlineSince.value ??= Date.now();
    throw error;
  }
}

/** Runs an action and shows its error. @template T @param {() => Promise<T>} run @returns {Promise<T | undefined>} */
export async function showErrors(run) {
  try {
    return await run();
  } catch (error) {
    notice.value = { text: String(/** @type {Error} */ (error).message), bad: true };
  }
}

/**
 * Runs an action that changes the namespace, shows its result and returns its answer.
 * @template T @param {string | ((answer: T) => Notice)} result @param {() => Promise<T>} run
 */
export function perform(result, run) {
  return showErrors(async () => {
    const answer = await run();
    notice.value = typeof result === "string" ? { text: result, bad: false } : result(answer);
    version.value += 1;
    return answer;
  });
}

/** Requests the list of namespaces. */
export async function loadNamespaces() {
  const answer = await source.request("GET", "/namespaces");
  namespaces.value = answer.map((/** @type {{name: string}} */ it) => it.name);
}

export async function start() {
  try {
    await loadNamespaces();
    // Not that of the signal: the location may have changed without its event yet.
    if (!parseRoute(location.hash).namespace && namespaces.value[0]) {
      const first = source.report?.fragment ?? formatRoute({ namespace: namespaces.value[0] });
      history.replaceState(null, "", first);
      route.value = parseRoute(first);
    }
  } catch (error) {
    offlineSince.value ??= Date.now();
    notice.value = { text: String(/** @type {Error} */ (error).message), bad: true };
  }
  effect(follow);
}

const visible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => {
  visible.value = !document.hidden;
});

/** Follows the changes of the selected namespace while the page is visible. */
function follow() {
  const selected = namespace.value;
  if (!selected || !visible.value) return;
  counts.value = {};
  lastChange.value = null;
  changesError.value = null;
  version.value = 0;
  let lost = false;
  return source.follow(selected, applyChange, (open, error) => {
    changesError.value = error ?? null;
    // Requests failed meanwhile that no change would repeat.
    if (open && (lost || offlineSince.peek() !== null)) version.value = version.peek() + 1;
    lost = !open;
    offlineSince.value = open || error ? null : (offlineSince.peek() ?? Date.now());
    // The views request their data once even if the page cannot follow changes.
    if (!open && version.peek() === 0) version.value = 1;
  });
}

/** @param {any} change */
function applyChange(change) {
  const before = lastChange.peek();
  lastChange.value = change;
  const changed = change.counts.map((/** @type {any} */ it) => [it.path, it.counts]);
  if (change.many || changed.length) counts.value = { ...(change.many ? {} : counts.peek()), ...Object.fromEntries(changed) };
  if (change.many || change.position !== before?.position) version.value = version.peek() + 1;
}
