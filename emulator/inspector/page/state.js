// What the page knows: the namespaces, the one that is shown, and what has changed in it.

import { computed, effect, signal } from "@preact/signals";
import { place, read, write } from "./address.js";
import { Live, Recorded, Refused } from "./source.js";

/** @typedef {{active: number, dead_letter: number, transfer_dead_letter: number, scheduled: number, transfer: number, locked: number, deferred: number, size_bytes: number}} Counts */

const recorded = document.getElementById("recorded");
/** @type {{recorded: boolean, told?: import("./source.js").Told, ask: Live["ask"], follow: Live["follow"]}} */
export const source = recorded ? new Recorded(JSON.parse(recorded.textContent ?? "{}")) : new Live();

/** @type {import("@preact/signals").Signal<string[]>} */
export const namespaces = signal([]);
export const namespace = computed(() => place.value.namespace || namespaces.value[0] || "");

/** What was last told of changes: the position in the record, the clock, what is due next. */
export const latest = signal(/** @type {any} */ (null));
/** Counts that have changed since their entity was listed. */
export const counts = signal(/** @type {Record<string, Counts>} */ ({}));
/** Rises when what is shown has to be asked for again; 0 until changes are followed, so that none is missed in between. */
export const version = signal(0);
/** Since when the emulator has not answered. */
export const silentSince = signal(/** @type {number | null} */ (null));
/** Why no changes are told, by an emulator that answers. */
export const refusal = signal(/** @type {string | null} */ (null));
/** What went wrong last, and what was done last. */
export const notice = signal(/** @type {{text: string, bad: boolean} | null} */ (null));

/** The path of the namespace in the control API. @param {string} rest */
export function inNamespace(rest) {
  return `/namespaces/${encodeURIComponent(namespace.value)}${rest}`;
}

/** @param {string} method @param {string} rest @param {import("./source.js").Options} [options] */
export async function ask(method, rest, options) {
  try {
    const answer = await source.ask(method, inNamespace(rest), options);
    silentSince.value = null;
    return answer;
  } catch (error) {
    if (!(error instanceof Refused) && !options?.signal?.aborted) silentSince.value ??= Date.now();
    throw error;
  }
}

/** Does something, and says why it did not work where it does not. @param {() => Promise<any>} what */
export async function tried(what) {
  try {
    return await what();
  } catch (error) {
    notice.value = { text: String(/** @type {Error} */ (error).message), bad: true };
  }
}

/** Does something that changes the namespace, and says how it went. @param {string} done @param {() => Promise<any>} what */
export async function act(done, what) {
  return tried(async () => {
    const answer = await what();
    notice.value = { text: done, bad: false };
    version.value += 1;
    return answer;
  });
}

/** Asks which namespaces there are now. */
export async function findNamespaces() {
  const answer = await source.ask("GET", "/namespaces");
  namespaces.value = answer.map((/** @type {{name: string}} */ it) => it.name);
}

export async function start() {
  try {
    await findNamespaces();
    if (!place.value.namespace && namespaces.value[0]) {
      const first = source.told?.place ?? write({ namespace: namespaces.value[0] });
      history.replaceState(null, "", first);
      place.value = read(first);
    }
  } catch (error) {
    silentSince.value ??= Date.now();
    notice.value = { text: String(/** @type {Error} */ (error).message), bad: true };
  }
  effect(follow);
}

const visible = signal(!document.hidden);
document.addEventListener("visibilitychange", () => {
  visible.value = !document.hidden;
});

/** A page that is not seen follows nothing. */
function follow() {
  const shown = namespace.value;
  if (!shown || !visible.value) return;
  counts.value = {};
  latest.value = null;
  refusal.value = null;
  version.value = 0;
  return source.follow(shown, told, (open, refused) => {
    refusal.value = refused ?? null;
    silentSince.value = open || refused ? null : (silentSince.peek() ?? Date.now());
    // Without changes there is still what can be asked for.
    if (!open && version.peek() === 0) version.value = 1;
  });
}

/** @param {any} frame */
function told(frame) {
  const before = latest.peek();
  latest.value = frame;
  if (frame.counts?.length) {
    const changed = frame.counts.map((/** @type {any} */ it) => [it.path, it.counts]);
    counts.value = { ...counts.peek(), ...Object.fromEntries(changed) };
  }
  if (frame.many || frame.position !== before?.position) version.value = version.peek() + 1;
}
