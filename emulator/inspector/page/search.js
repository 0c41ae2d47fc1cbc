// Searches of messages beyond a page of a list, and the values of custom columns.

import { formatValue } from "./values.js";
import { bytes, utf8 } from "./format.js";
import { tokens, valueAt } from "./json.js";
import { request } from "./state.js";

/** @typedef {{state?: string, where?: string, body_contains?: string}} Criteria the filters of a list; an empty one selects all messages */

const PAGE = 200;
/** A preview with fewer bytes is the whole body. A truncated one has 200 bytes, less those of a character that would be split. */
const PREVIEW_BYTES = 197;
/** The maximum number of cached rows. */
const CACHE_SIZE = 2000;

/** Returns the messages that match, up to `limit`, and whether there are more. @param {string} path @param {Criteria} criteria @param {number} limit */
export async function findMessages(path, criteria, limit) {
  const rows = [];
  let from;
  do {
    const answer = await request("GET", "/messages", { query: { entity: path, ...criteria, from, limit: PAGE } });
    rows.push(...answer.messages);
    from = answer.next;
  } while (from !== undefined && rows.length <= limit);
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}

/**
 * Returns a function that adds the values of custom columns to rows. A list has neither properties nor the whole body, so each
 * message is requested. The values are cached until the next delivery, which may change properties.
 * @param {string} path @param {string[]} names application properties, properties, or `body.` and a path in JSON
 */
export function customColumns(path, names) {
  /** @type {Map<string, string[]>} */
  const cache = new Map();
  return async (/** @type {any[]} */ rows, /** @type {AbortSignal} */ signal) => {
    if (names.length === 0) return rows;
    return Promise.all(rows.map(async (row) => {
      const key = `${row.sequence_number} ${row.delivery_count} ${row.state}`;
      let own = cache.get(key) ?? fromPreview(row, names);
      if (!own) {
        const content = await request("GET", `/messages/${row.sequence_number}`, { query: { entity: path }, signal }).catch(() => null);
        own = names.map((name) => (content ? columnValue(content.message, name) : "…"));
        if (content) cache.set(key, own);
        if (cache.size > CACHE_SIZE) cache.delete(/** @type {string} */ (cache.keys().next().value));
      }
      return { ...row, own };
    }));
  };
}

/** Returns the values of the columns if the preview of the body suffices. @param {any} row @param {string[]} names */
function fromPreview(row, names) {
  if (!names.every((name) => name.startsWith("body."))) return null;
  const parsed = tokens(row.preview);
  if (parsed) return names.map((name) => valueAt(parsed, keys(name)));
  return new TextEncoder().encode(row.preview ?? "").length < PREVIEW_BYTES ? names.map(() => "") : null;
}

/** @param {any} message @param {string} name */
function columnValue(message, name) {
  if (!name.startsWith("body.")) {
    const own = message.application_properties ?? {};
    const value = Array.isArray(own) ? own.find(([key]) => formatValue(key)[0] === name)?.[1] : own[name];
    return formatValue(value ?? message.properties?.[name])[0];
  }
  const { body } = message;
  if (body?.omitted !== undefined) return "…";
  if (body?.value && typeof body.value === "object") return formatValue(keys(name).reduce(member, body.value))[0];
  const text = body?.text ?? (body?.data ? utf8(bytes(...body.data)) : body?.value);
  const parsed = tokens(text);
  return parsed ? valueAt(parsed, keys(name)) : "";
}

/** Returns a member of an AMQP map or list. @param {any} value @param {string} key */
function member(value, key) {
  return value?.map ? value.map.find((/** @type {any} */ [name]) => formatValue(name)[0] === key)?.[1] : value?.list?.[key];
}

/** @param {string} name */
function keys(name) {
  return name.slice("body.".length).split(".");
}
