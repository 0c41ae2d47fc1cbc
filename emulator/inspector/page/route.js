// The route of the page: the fragment of its URL. Links and the harness depend on its format.

import { signal } from "@preact/signals";

/**
 * @typedef {object} Route
 * @property {string} namespace
 * @property {"namespace" | "entity" | "record" | "faults" | "connections" | "rules"} view
 * @property {string} [entity] the path of a queue, topic or subscription
 * @property {string} [subQueue] `dead-letter`, `transfer-dead-letter`, or empty
 * @property {string} [tab] `messages`, `sessions`, `record`, `settings` or empty
 * @property {string} [item] a sequence number or a session ID
 * @property {Record<string, string>} query
 */

const VIEWS = ["record", "faults", "connections", "rules"];
const SUB_QUEUES = ["dead-letter", "transfer-dead-letter"];

/** @param {string} fragment @returns {Route} */
export function parseRoute(fragment) {
  const [path = "", search = ""] = fragment.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [namespace = "", first = "", ...rest] = path.split("/");
  const route = { namespace: decode(namespace), query };
  if (first === "") return { ...route, view: "namespace" };
  // The first letter of an entity with such a name is percent-encoded.
  if (VIEWS.includes(first)) return { ...route, view: /** @type {any} */ (first) };
  const subQueue = SUB_QUEUES.includes(rest[0]) ? rest.shift() : "";
  const [tab = "", item] = rest;
  return { ...route, view: "entity", entity: decode(first), subQueue, tab, item: item === undefined ? item : decode(item) };
}

/** @param {Partial<Route>} route */
export function formatRoute({ namespace = "", view, entity, subQueue, tab, item, query = {} }) {
  const segments = [encodeURIComponent(namespace)];
  if (view && view !== "entity" && view !== "namespace") segments.push(view);
  if (entity !== undefined && (view === undefined || view === "entity")) {
    const name = encodeURIComponent(entity);
    segments.push(VIEWS.includes(name) ? `%${name.charCodeAt(0).toString(16)}${name.slice(1)}` : name);
    if (subQueue) segments.push(subQueue);
    if (tab) segments.push(tab);
    if (tab && item !== undefined) segments.push(encodeURIComponent(item));
  }
  const search = new URLSearchParams(query).toString();
  return `#/${segments.join("/")}${search ? `?${search}` : ""}`;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal(parseRoute(location.hash));
addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** Opens a route and adds it to the browser's history. @param {Partial<Route>} to */
export function navigate(to) {
  location.hash = formatRoute(to);
}
