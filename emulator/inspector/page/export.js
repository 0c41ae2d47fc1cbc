// Messages leave the page as a file and come back from one, and the page says how a shell or a test asks for them.

import { useState } from "preact/hooks";
import { count, parts } from "./format.js";
import { html } from "./html.js";
import { exactly } from "./json.js";
import { Copy, save } from "./parts.js";
import { looked } from "./search.js";
import { Refused } from "./source.js";
import { act, ask, namespace, notice, source, tried } from "./state.js";

/** Messages in a file. */
const MOST = 10000;
/** Messages in a request. */
const AT_ONCE = 100;

/** @typedef {import("./search.js").Criteria} Criteria */

/** @param {{path: string, criteria: Criteria, row: any}} props */
export function Export({ path, criteria, row }) {
  const [busy, setBusy] = useState(false);
  const [entity, part] = parts(path);
  const export_ = async () => {
    setBusy(true);
    const made = await tried(() => file(path, criteria));
    setBusy(false);
    if (!made) return;
    save(`${path.replaceAll(/[/$]+/g, "-")}.json`, JSON.stringify(made.messages, null, 1));
    notice.value = { text: [`Exported ${count(made.messages.length, "message")}`, ...made.missing].join("; "), bad: made.missing.length > 0 };
  };
  return html`
    <button onClick=${export_} disabled=${busy}>${busy ? "Exporting…" : "Export"}</button>
    ${!source.recorded && !part && html`<label class="button">Import<input class="unseen" type="file" accept=".json,application/json" onChange=${(/** @type {any} */ event) => read(event, entity)} /></label>`}
    ${!source.recorded && html`<${Copy} text=${() => curl(path, criteria)}>Copy as curl<//>`}
    ${row && html`
      <${Copy} text=${() => rust(row, part)}>Copy as Rust<//>
      <${Copy} text=${() => `assert servicebus.counts("${path}")["${counter(row, part)}"] == ${held(row, part)}`}>Copy as pytest<//>`}`;
}

/** The messages of a file, and what is not in it. @param {string} path @param {Criteria} criteria */
async function file(path, criteria) {
  const { rows, more } = await looked(path, criteria, MOST);
  const messages = [];
  let gone = 0;
  let large = 0;
  for (const { sequence_number } of rows) {
    try {
      const { message } = await ask("GET", `/messages/${sequence_number}`, { query: { entity: path } });
      if (message.body?.omitted === undefined) messages.push(message);
      else large += 1;
    } catch (error) {
      if (!(error instanceof Refused && error.status === 404)) throw error;
      gone += 1;
    }
  }
  const missing = [
    gone > 0 && `${count(gone, "message")} ${source.recorded ? "stood in the list alone" : "went meanwhile"}`,
    large > 0 && `${count(large, "message")} of more than 1 MiB left out`,
    more && `there are more than ${MOST.toLocaleString("en")}`,
  ];
  return { messages, missing: missing.filter(Boolean) };
}

/** Sends what a file has. @param {any} event @param {string} entity */
async function read(event, entity) {
  const file = event.currentTarget.files[0];
  event.currentTarget.value = "";
  if (!file) return;
  const sent = await act("Imported", async () => send([exactly(await file.text())].flat(), entity));
  if (sent) notice.value = { text: sent, bad: false };
}

/** What was sent. @param {any[]} messages @param {string} entity */
async function send(messages, entity) {
  let sent = 0;
  let dropped = 0;
  for (let at = 0; at < messages.length; at += AT_ONCE) {
    try {
      const { sequence_numbers } = await ask("POST", "/messages", { query: { entity }, body: messages.slice(at, at + AT_ONCE) });
      const numbers = sequence_numbers.filter((/** @type {number | null} */ it) => it !== null).length;
      sent += numbers;
      dropped += sequence_numbers.length - numbers;
    } catch (error) {
      const place = at > 0 ? ` (the ${count(at, "message")} before are sent)` : "";
      throw new Error(`${/** @type {Error} */ (error).message}${place}`);
    }
  }
  return `Sent ${count(sent, "message")}${dropped ? `; ${count(dropped, "duplicate")} dropped` : ""}`;
}

/** @param {string} path @param {Criteria} criteria */
function curl(path, criteria) {
  const query = new URLSearchParams(Object.entries({ entity: path, ...criteria }).filter(([, value]) => value));
  return `curl '${location.origin}${location.pathname}v1/namespaces/${encodeURIComponent(namespace.value)}/messages?${query}'`;
}

/** What the harness asserts of the messages that are here. @param {any} row @param {string} part */
function rust(row, part) {
  const [topic, name] = row.path.split(/\/Subscriptions\//i);
  const client = name === undefined ? `servicebus.${row.kind}("${topic}")` : `servicebus.subscription("${topic}", "${name}")`;
  const queue = { "dead-letter": ".dead_letters()", "transfer-dead-letter": ".transfer_dead_letters()" }[part] ?? "";
  return `assert_message_count!(${client}${queue}, ${counter(row, part)} = ${held(row, part)}).await;`;
}

/** What is counted: a topic itself holds what is scheduled and nothing else. @param {any} row @param {string} part */
function counter(row, part) {
  return row.kind === "topic" && !part ? "scheduled" : "active";
}

/** @param {any} row @param {string} part */
function held(row, part) {
  return row.counts[part ? part.replaceAll("-", "_") : counter(row, part)];
}
