// Export and import of messages as a file, and requests and assertions to copy.

import { useState } from "preact/hooks";
import { count, splitAddress } from "./format.js";
import { html } from "./html.js";
import { parseTyped } from "./json.js";
import { Copy, save } from "./components.js";
import { findMessages } from "./search.js";
import { RequestError } from "./source.js";
import { perform, request, namespace, notice, source, showErrors } from "./state.js";

/** The maximum number of messages per file. */
const MAX_EXPORT = 10000;
/** The maximum number of messages per request, and of characters to which it adds another one: it may have 8 MiB. */
const BATCH = 100;
const BATCH_LENGTH = 2 ** 21;

/** @typedef {import("./search.js").Criteria} Criteria */

/** @param {{path: string, criteria: Criteria, row: any}} props */
export function Export({ path, criteria, row }) {
  const [busy, setBusy] = useState(false);
  const [entity, subQueue] = splitAddress(path);
  const exportFile = async () => {
    setBusy(true);
    const exported = await showErrors(() => collect(path, criteria));
    setBusy(false);
    if (!exported) return;
    save(`${path.replaceAll(/[/$]+/g, "-")}.json`, JSON.stringify(exported.messages, null, 1));
    notice.value = { text: [`Exported ${count(exported.messages.length, "message")}`, ...exported.missing].join("; "), bad: exported.missing.length > 0 };
  };
  return html`
    <button onClick=${exportFile} disabled=${busy}>${busy ? "Exporting…" : "Export"}</button>
    ${!source.recorded && !subQueue && html`<label class="button">Import<input class="visually-hidden" type="file" accept=".json,application/json" onChange=${(/** @type {any} */ event) => importFile(event, entity)} /></label>`}
    ${!source.recorded && html`<${Copy} text=${() => curl(path, criteria)}>Copy as curl<//>`}
    ${row && html`
      <${Copy} text=${() => rust(row, subQueue)}>Copy as Rust<//>
      <${Copy} text=${() => `assert servicebus.counts("${path}")["${counter(row, subQueue)}"] == ${countOf(row, subQueue)}`}>Copy as pytest<//>`}`;
}

/** Collects the messages to export, and why others are missing. @param {string} path @param {Criteria} criteria */
async function collect(path, criteria) {
  const { rows, more } = await findMessages(path, criteria, MAX_EXPORT);
  const messages = [];
  let gone = 0;
  let large = 0;
  for (const { sequence_number } of rows) {
    try {
      const { message } = await request("GET", `/messages/${sequence_number}`, { query: { entity: path } });
      if (message.body?.omitted === undefined) messages.push(message);
      else large += 1;
    } catch (error) {
      if (!(error instanceof RequestError && error.status === 404)) throw error;
      gone += 1;
    }
  }
  const missing = [
    gone > 0 && `${count(gone, "message")} skipped (${source.recorded ? "recorded without content" : "no longer in the entity"})`,
    large > 0 && `${count(large, "message")} skipped (larger than 1 MiB)`,
    more && `only the first ${MAX_EXPORT.toLocaleString("en")} messages`,
  ];
  return { messages, missing: missing.filter(Boolean) };
}

/** Sends the messages of a file. @param {any} event @param {string} entity */
async function importFile(event, entity) {
  const file = event.currentTarget.files[0];
  event.currentTarget.value = "";
  if (!file) return;
  await perform((text) => ({ text, bad: false }), async () => send([parseTyped(await file.text())].flat(), entity));
}

/** Sends messages and returns the notice. @param {any[]} messages @param {string} entity */
async function send(messages, entity) {
  let sent = 0;
  let dropped = 0;
  for (let at = 0, end = 0; at < messages.length; at = end) {
    end = endOfBatch(messages, at);
    try {
      const { sequence_numbers } = await request("POST", "/messages", { query: { entity }, body: messages.slice(at, end) });
      const numbers = sequence_numbers.filter((/** @type {number | null} */ it) => it !== null).length;
      sent += numbers;
      dropped += sequence_numbers.length - numbers;
    } catch (error) {
      const imported = at > 0 ? ` (the first ${count(at, "message")} were imported)` : "";
      throw new Error(`${/** @type {Error} */ (error).message}${imported}`);
    }
  }
  return `Imported ${count(sent, "message")}${dropped ? `; ${count(dropped, "duplicate")} discarded` : ""}`;
}

/** The end of the batch that begins with this message. @param {any[]} messages @param {number} at */
function endOfBatch(messages, at) {
  let length = 0;
  let end = at;
  while (end < messages.length && end - at < BATCH && length < BATCH_LENGTH) {
    length += JSON.stringify(messages[end]).length;
    end += 1;
  }
  return end;
}

/** @param {string} path @param {Criteria} criteria */
function curl(path, criteria) {
  const query = new URLSearchParams(Object.entries({ entity: path, ...criteria }).filter(([, value]) => value));
  return `curl '${location.origin}${location.pathname}v1/namespaces/${encodeURIComponent(namespace.value)}/messages?${query}'`;
}

/** The assertion of the harness for the current number of messages. @param {any} row @param {string} subQueue */
function rust(row, subQueue) {
  const [topic, name] = row.path.split(/\/Subscriptions\//i);
  const client = name === undefined ? `servicebus.${row.kind}("${topic}")` : `servicebus.subscription("${topic}", "${name}")`;
  const queueOf = { "dead-letter": ".dead_letters()", "transfer-dead-letter": ".transfer_dead_letters()" }[subQueue] ?? "";
  return `assert_message_count!(${client}${queueOf}, ${counter(row, subQueue)} = ${countOf(row, subQueue)}).await;`;
}

/** The name of the count. A topic itself only holds scheduled messages. @param {any} row @param {string} subQueue */
function counter(row, subQueue) {
  return row.kind === "topic" && !subQueue ? "scheduled" : "active";
}

/** @param {any} row @param {string} subQueue */
function countOf(row, subQueue) {
  return row.counts[subQueue ? subQueue.replaceAll("-", "_") : counter(row, subQueue)];
}
