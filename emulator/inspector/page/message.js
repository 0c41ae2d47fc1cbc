// A message: its body, its properties with their AMQP types, what the broker knows of it, and its story.

import { useEffect, useState } from "preact/hooks";
import { place } from "./address.js";
import { Edit, One } from "./actions.js";
import { useAnswer } from "./ask.js";
import { State } from "./entity.js";
import { address, bytes, hex, instant, size, utf8 } from "./format.js";
import { html } from "./html.js";
import { indented, tokens } from "./json.js";
import { Facts, Go, Waiting } from "./parts.js";
import { source } from "./state.js";
import { Story } from "./story.js";
import { typed } from "./values.js";

export function Message() {
  const { entity = "", part = "", item = "", query } = place.value;
  const path = address(entity, part);
  const answer = useAnswer(`/messages/${item}`, { entity: path });
  const [editing, setEditing] = useState(false);
  const back = { entity, part, query };
  const title = html`<header class="bar">
    <h2>Message ${item}</h2>
    <${Go} to=${back} class="close" label="Close the message">✕<//>
  </header>`;
  if (!answer.data) {
    return html`${title}${answer.error ? html`<p class="note">It is not here any more: ${answer.error.message}</p>` : html`<${Waiting} answer=${answer} />`}
      ${answer.error && html`<${Story} query=${{ entity: path, sequence_number: item }} />`}`;
  }
  const { summary, message } = answer.data;
  const story = summary.message_id ? { message_id: summary.message_id } : { entity: path, sequence_number: item };
  return html`
    ${title}
    <${One} path=${path} summary=${summary} edit=${() => setEditing(true)} />
    ${editing && html`<${Edit} path=${path} held=${answer.data} close=${() => setEditing(false)} />`}
    <${Facts} rows=${known(summary)} />
    <h3>Body</h3>
    <${Body} body=${message.body} type=${summary.content_type} encoding=${message.properties?.content_encoding} />
    ${sections(message).map(([name, value]) => html`<h3>${name}</h3><${Values} value=${value} />`)}
    <h3>Story</h3>
    <${Story} query=${story} />`;
}

/** @param {any} summary @returns {[string, any][]} */
function known(summary) {
  const lock = summary.locked_until && `until ${instant(summary.locked_until)}`;
  return [
    ["State", html`<${State} row=${summary} />`],
    ["Message id", summary.message_id],
    ["Session", summary.session_id && html`<${Go} to=${{ ...place.value, tab: "sessions", item: summary.session_id }}>${summary.session_id}<//>`],
    ["Subject", summary.subject],
    ["Content type", summary.content_type],
    ["Enqueued", instant(summary.enqueued_at)],
    ["Expires", instant(summary.expires_at)],
    ["Becomes active", instant(summary.activates_at)],
    ["Locked", lock],
    ["Failed deliveries", summary.delivery_count],
    ["Size", size(summary.size)],
    ["Dead-letter reason", summary.dead_letter_reason],
    ["Dead-letter description", summary.dead_letter_description],
    ["Dead-letter source", summary.dead_letter_source],
  ];
}

/** @param {any} message @returns {[string, any][]} */
function sections(message) {
  /** @type {[string, any][]} */
  const all = [
    ["Application properties", message.application_properties],
    ["Properties", message.properties],
    ["Header", message.header],
    ["Message annotations", message.message_annotations],
    ["Delivery annotations", message.delivery_annotations],
    ["Footer", message.footer],
  ];
  return all.filter(([, value]) => value !== undefined);
}

// Values in one table.
const ROWS = 1000;

/** @param {{value: any}} props */
function Values({ value }) {
  const all = Array.isArray(value) ? value.map(([name, it]) => [typed(name)[0], it]) : Object.entries(value);
  const rows = all.slice(0, ROWS);
  return html`<table class="values">
    <caption class="unseen">Values with their types</caption>
    <thead><tr><th>Name</th><th>Value</th><th>AMQP type</th></tr></thead>
    <tbody>${rows.map(([name, it]) => {
      const [text, type] = typed(it);
      return html`<tr><td>${name}</td><td>${text}</td><td class="muted">${type}</td></tr>`;
    })}</tbody>
  </table>
  ${all.length > ROWS && html`<p class="muted">${all.length - ROWS} more are not shown.</p>`}`;
}

const FORMS = ["text", "JSON", "XML", "hex"];
const SHOWN = 1 << 18;

/** @param {{body: any, type: string | undefined, encoding: any}} props */
function Body({ body, type = "", encoding }) {
  const data = body?.data && bytes(...body.data);
  const packed = data && (typed(encoding)[0] === "gzip" || (data[0] === 0x1f && data[1] === 0x8b));
  const [unpacked, setUnpacked] = useState(/** @type {Uint8Array | null} */ (null));
  useEffect(() => {
    let here = true;
    setUnpacked(null);
    if (packed) unpack(data).then((it) => here && setUnpacked(it));
    return () => {
      here = false;
    };
  }, [body?.data?.join(" ")]);
  const raw = unpacked ?? data;
  const text = body?.text ?? (raw ? utf8(raw) : body?.value === undefined ? null : valueText(body.value));
  const [form, setForm] = useState("");
  if (!body) return html`<p class="muted">none</p>`;
  if (body.omitted !== undefined) return html`<p class="muted">${size(body.omitted)}: messages of more than 1 MiB are not shown here. ${!source.recorded && html`<a href=${rawAddress()} download>Save the body</a>`}</p>`;
  if (body.sequences) return html`<pre tabindex="0">${JSON.stringify(body.sequences.map((/** @type {any} */ it) => it.map((/** @type {any} */ value) => typed(value)[0])), null, 2)}</pre>`;
  const parsed = tokens(text);
  const chosen = form || (text === null ? "hex" : parsed ? "JSON" : /xml/i.test(type) || /^\s*<[?\w]/.test(text) ? "XML" : "text");
  const shown = {
    text: text ?? "not UTF-8: look at it as hex",
    JSON: parsed ? indented(parsed, text ?? "") : (text ?? ""),
    XML: lines(text ?? ""),
    hex: hex(raw ?? new TextEncoder().encode(text ?? "")),
  }[/** @type {"text"} */ (chosen)];
  return html`
    <div class="bar">
      <div class="segments" role="group" aria-label="How the body is shown">
        ${FORMS.map((it) => html`<button aria-pressed=${it === chosen} onClick=${() => setForm(it)}>${it}</button>`)}
      </div>
      ${packed && html`<span class="muted">${unpacked ? "unpacked from gzip" : "gzip"}</span>`}
      ${!source.recorded && html`<a href=${rawAddress()} download>save</a>`}
    </div>
    <pre tabindex="0" role="region" aria-label="Body">${shown.length > SHOWN ? `${shown.slice(0, SHOWN)}\n… ${shown.length - SHOWN} more characters` : shown}</pre>`;
}

function rawAddress() {
  const { namespace, entity = "", part = "", item } = place.value;
  return `v1/namespaces/${encodeURIComponent(namespace)}/messages/${item}/body?entity=${encodeURIComponent(address(entity, part))}`;
}

/** What gzip has packed, up to four mebibytes: a few bytes can stand for any number. @param {Uint8Array} data */
async function unpack(data) {
  const reader = new Blob([/** @type {any} */ (data)]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const chunks = [];
  let length = 0;
  try {
    while (length < 4 << 20) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      length += value.length;
    }
    await reader.cancel();
  } catch {
    if (!length) return null;
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** @param {any} value */
function valueText(value) {
  const [text] = typed(value);
  return text;
}

/** One element a line. @param {string} text */
function lines(text) {
  let depth = 0;
  return text
    .replace(/>\s*</g, ">\n<")
    .split("\n")
    .map((line) => {
      if (/^<\//.test(line)) depth = Math.max(0, depth - 1);
      const shown = "  ".repeat(depth) + line;
      if (/^<[^/?!][^>]*[^/]>$/.test(line) || /^<\w>$/.test(line)) depth += 1;
      return shown;
    })
    .join("\n");
}
