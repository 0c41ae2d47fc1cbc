// Where the page is: the part of its address behind `#`, which links and tests rely on.

import { signal } from "@preact/signals";

/**
 * @typedef {object} Place
 * @property {string} namespace
 * @property {"namespace" | "entity" | "record" | "faults" | "connections" | "rules"} view
 * @property {string} [entity] the path of a queue, topic or subscription
 * @property {string} [part] `dead-letter`, `transfer-dead-letter`, or empty
 * @property {string} [tab] `messages`, `sessions` or empty
 * @property {string} [item] a sequence number or the id of a session
 * @property {Record<string, string>} query
 */

const VIEWS = ["record", "faults", "connections", "rules"];
const PARTS = ["dead-letter", "transfer-dead-letter"];

/** @param {string} text @returns {Place} */
export function read(text) {
  const [path = "", search = ""] = text.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const query = Object.fromEntries(new URLSearchParams(search));
  const [namespace = "", first = "", ...rest] = path.split("/");
  const place = { namespace: decode(namespace), query };
  if (first === "") return { ...place, view: "namespace" };
  // A queue of such a name is written with its first letter encoded.
  if (VIEWS.includes(first)) return { ...place, view: /** @type {any} */ (first) };
  const part = PARTS.includes(rest[0]) ? rest.shift() : "";
  const [tab = "", item] = rest;
  return { ...place, view: "entity", entity: decode(first), part, tab, item: item === undefined ? item : decode(item) };
}

/** @param {Partial<Place>} place */
export function write(place) {
  const { namespace = "", view, entity, part, tab, item, query = {} } = { ...place };
  const segments = [encodeURIComponent(namespace)];
  if (view && view !== "entity" && view !== "namespace") segments.push(view);
  if (entity !== undefined && (view === undefined || view === "entity")) {
    const name = encodeURIComponent(entity);
    segments.push(VIEWS.includes(name) ? `%${name.charCodeAt(0).toString(16)}${name.slice(1)}` : name);
    if (part) segments.push(part);
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

export const place = signal(read(location.hash));
addEventListener("hashchange", () => {
  place.value = read(location.hash);
});

/** Goes to a place, with a step to come back by. @param {Partial<Place>} to */
export function go(to) {
  location.hash = write(to);
}
