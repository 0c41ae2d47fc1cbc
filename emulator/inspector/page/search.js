// Messages that are looked for: all of them, not a page, and what a column of one's own shows of each.

import { typed } from "./values.js";
import { bytes, utf8 } from "./format.js";
import { tokens, valueAt } from "./json.js";
import { ask } from "./state.js";

/** @typedef {{state?: string, where?: string, body_contains?: string}} Criteria what messages are looked for; what is empty is any */

const PAGE = 200;
/** Bytes of a body in a list, less those of a character that is cut through. */
const CUT = 197;
/** Values of columns that are remembered. */
const KEPT = 2000;

/** Those that a list shows, up to a number of them, and whether there are more. @param {string} path @param {Criteria} criteria @param {number} most */
export async function looked(path, criteria, most) {
  const rows = [];
  let from;
  do {
    const answer = await ask("GET", "/messages", { query: { entity: path, ...criteria, from, limit: PAGE } });
    rows.push(...answer.messages);
    from = answer.next;
  } while (from !== undefined && rows.length <= most);
  return { rows: rows.slice(0, most), more: rows.length > most };
}

/**
 * Adds to rows what columns of one's own show. A list has neither properties nor the whole body, so that messages are asked for; what
 * they have had is remembered until a delivery, which may change properties.
 * @param {string} path @param {string[]} names of properties, or `body.` and a path in JSON
 */
export function columnsOf(path, names) {
  /** @type {Map<string, string[]>} */
  const known = new Map();
  return async (/** @type {any[]} */ rows, /** @type {AbortSignal} */ signal) => {
    if (names.length === 0) return rows;
    return Promise.all(rows.map(async (row) => {
      const key = `${row.sequence_number} ${row.delivery_count} ${row.state}`;
      let own = known.get(key) ?? previewed(row, names);
      if (!own) {
        const held = await ask("GET", `/messages/${row.sequence_number}`, { query: { entity: path }, signal }).catch(() => null);
        own = names.map((name) => (held ? shown(held.message, name) : "…"));
        if (held) known.set(key, own);
        if (known.size > KEPT) known.delete(/** @type {string} */ (known.keys().next().value));
      }
      return { ...row, own };
    }));
  };
}

/** What the beginning of a body is enough for. @param {any} row @param {string[]} names */
function previewed(row, names) {
  if (!names.every((name) => name.startsWith("body."))) return null;
  const parsed = tokens(row.preview);
  if (parsed) return names.map((name) => valueAt(parsed, keys(name)));
  return new TextEncoder().encode(row.preview ?? "").length < CUT ? names.map(() => "") : null;
}

/** @param {any} message @param {string} name */
function shown(message, name) {
  if (!name.startsWith("body.")) {
    const own = message.application_properties ?? {};
    const value = Array.isArray(own) ? own.find(([key]) => typed(key)[0] === name)?.[1] : own[name];
    return typed(value ?? message.properties?.[name])[0];
  }
  const { body } = message;
  if (body?.omitted !== undefined) return "…";
  const text = body?.text ?? (body?.data ? utf8(bytes(...body.data)) : body?.value === undefined ? null : typed(body.value)[0]);
  const parsed = tokens(text);
  return parsed ? valueAt(parsed, keys(name)) : "";
}

/** @param {string} name */
function keys(name) {
  return name.slice("body.".length).split(".");
}
