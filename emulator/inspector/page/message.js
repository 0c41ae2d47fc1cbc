// A message: its state, its body, its properties with their AMQP types, and its timeline.

import { useEffect, useState } from "preact/hooks";
import { route } from "./route.js";
import { ResubmitDialog, MessageActions } from "./actions.js";
import { useRequest } from "./request.js";
import { State } from "./entity.js";
import { address, bytes, count, hex, instant, size, utf8 } from "./format.js";
import { html } from "./html.js";
import { MAX_DEPTH, indented, tokens } from "./json.js";
import { MAX_ROWS, PropertyList, Link, Placeholder } from "./components.js";
import { source } from "./state.js";
import { RequestError } from "./source.js";
import { Timeline } from "./timeline.js";
import { formatValue, plain } from "./values.js";

export function Message() {
  const { entity = "", subQueue = "", item = "", query } = route.value;
  const path = address(entity, subQueue);
  const answer = useRequest(`/messages/${item}`, { entity: path });
  const [editing, setEditing] = useState(false);
  const back = { entity, subQueue, query };
  const title = html`<header class="bar">
    <h2>Message ${item}</h2>
    <${Link} to=${back} class="close" label="Close the message">✕<//>
  </header>`;
  if (!answer.data) {
    return html`${title}${answer.error ? html`<p class="note">The message is not available: ${answer.error.message}</p>` : html`<${Placeholder} answer=${answer} />`}
      ${answer.error && html`<${Timeline} query=${{ entity: path, sequence_number: item }} />`}`;
  }
  const { summary, message } = answer.data;
  const gone = answer.error instanceof RequestError && answer.error.status === 404;
  const events = summary.message_id ? { message_id: summary.message_id } : { entity: path, sequence_number: item };
  return html`
    ${title}
    ${gone ? html`<p class="note" role="status">The message is no longer in ${path}.</p>` : html`<${MessageActions} path=${path} summary=${summary} edit=${() => setEditing(true)} />`}
    ${editing && html`<${ResubmitDialog} path=${path} content=${answer.data} close=${() => setEditing(false)} />`}
    <${PropertyList} rows=${brokerProperties(gone ? { ...summary, state: null, locked_until: null } : summary)} />
    <h3>Body</h3>
    <${Body} body=${message.body} type=${summary.content_type} encoding=${message.properties?.content_encoding} />
    ${sections(message).map(([name, value]) => html`<h3>${name}</h3><${Values} value=${value} />`)}
    <h3>Timeline</h3>
    <${Timeline} query=${events} />`;
}

/** @param {any} summary @returns {[string, any][]} */
function brokerProperties(summary) {
  return [
    ["State", summary.state && html`<${State} row=${summary} />`],
    ["Message ID", summary.message_id],
    ["Session ID", summary.session_id && html`<${Link} to=${{ ...route.value, subQueue: "", tab: "sessions", item: summary.session_id }}>${summary.session_id}<//>`],
    ["Subject", summary.subject],
    ["Content type", summary.content_type],
    ["Enqueued time", instant(summary.enqueued_at)],
    ["Expiry time", instant(summary.expires_at)],
    ["Scheduled enqueue time", instant(summary.activates_at)],
    ["Locked until", instant(summary.locked_until)],
    ["Delivery count", summary.delivery_count],
    ["Size", size(summary.size)],
    ["Dead-letter reason", summary.dead_letter_reason],
    ["Dead-letter error description", summary.dead_letter_description],
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

/** @param {{value: any}} props */
function Values({ value }) {
  const all = Array.isArray(value) ? value.map(([name, it]) => [formatValue(name)[0], it]) : Object.entries(value);
  const rows = all.slice(0, MAX_ROWS);
  return html`<table class="values">
    <caption class="visually-hidden">Values with their AMQP types</caption>
    <thead><tr><th>Name</th><th>Value</th><th>AMQP type</th></tr></thead>
    <tbody>${rows.map(([name, it]) => {
      const [text, type] = formatValue(it);
      return html`<tr><td>${name}</td><td>${text}</td><td class="muted">${type}</td></tr>`;
    })}</tbody>
  </table>
  ${all.length > MAX_ROWS && html`<p class="muted">${count(all.length - MAX_ROWS, "more value")} not shown.</p>`}`;
}

const FORMATS = ["text", "JSON", "XML", "hex"];
/** The maximum length of a body on the page, in characters. */
const MAX_BODY = 1 << 18;

/** @param {{body: any, type: string | undefined, encoding: any}} props */
function Body({ body, type = "", encoding }) {
  const encoded = body?.data ?? (body?.value?.binary !== undefined && [body.value.binary]);
  const data = encoded && bytes(...encoded);
  const compressed = data && (formatValue(encoding)[0] === "gzip" || (data[0] === 0x1f && data[1] === 0x8b));
  const [decompressed, setDecompressed] = useState(/** @type {Uint8Array | null} */ (null));
  useEffect(() => {
    let mounted = true;
    setDecompressed(null);
    if (compressed) decompress(data).then((it) => mounted && setDecompressed(it));
    return () => {
      mounted = false;
    };
  }, [encoded && encoded.join(" ")]);
  const raw = decompressed ?? data;
  const value = body?.sequences ?? body?.value;
  const text = body?.text ?? (raw ? utf8(raw) : typeof value === "string" ? value : JSON.stringify(plain(value)));
  const [format, setFormat] = useState("");
  if (!body) return html`<p class="muted">The message has no body.</p>`;
  if (body.omitted !== undefined) return html`<p class="muted">${size(body.omitted)}. Bodies of messages larger than 1 MiB are not shown. ${!source.recorded && html`<a href=${rawAddress()} download>Save body</a>`}</p>`;
  const parsed = tokens(text);
  const selected = format || (text === null ? "hex" : parsed ? "JSON" : /xml/i.test(type) || /^\s*<[?\w]/.test(text) ? "XML" : "text");
  const shown = {
    text: () => text ?? "The body is not UTF-8. View it as hex.",
    JSON: () => (parsed ? indented(parsed, text ?? "") : (text ?? "")),
    XML: () => indentedXml(text ?? ""),
    hex: () => hex(raw || new TextEncoder().encode(text ?? "")),
  }[/** @type {"text"} */ (selected)]();
  return html`
    <div class="bar">
      <div class="segments" role="group" aria-label="Body format">
        ${FORMATS.map((it) => html`<button aria-pressed=${it === selected} onClick=${() => setFormat(it)}>${it}</button>`)}
      </div>
      <span class="muted">${body.sequences ? "AMQP sequence" : body.value === undefined ? "data" : `AMQP value, ${formatValue(body.value)[1]}`}</span>
      ${compressed && html`<span class="muted">${decompressed ? "decompressed (gzip)" : "gzip"}</span>`}
      ${!source.recorded && html`<a href=${rawAddress()} download>Save</a>`}
    </div>
    <pre tabindex="0" role="region" aria-label="Body">${shown.length > MAX_BODY ? `${shown.slice(0, MAX_BODY)}\n… ${shown.length - MAX_BODY} more characters` : shown}</pre>`;
}

function rawAddress() {
  const { namespace, entity = "", subQueue = "", item } = route.value;
  return `v1/namespaces/${encodeURIComponent(namespace)}/messages/${item}/body?entity=${encodeURIComponent(address(entity, subQueue))}`;
}

/** Decompresses at most 4 MiB of gzip data, because a few bytes can expand to any size. @param {Uint8Array} data */
async function decompress(data) {
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

/** Indents XML, one element per line, or returns it unchanged if it is too deep. @param {string} text */
function indentedXml(text) {
  // In HTML, elements such as `<br>` are not closed.
  const closed = new Set(text.match(/<\/[^\s>]+/g));
  const lines = [];
  let depth = 0;
  for (const line of text.replace(/>\s*</g, ">\n<").split("\n")) {
    if (line.startsWith("</")) depth = Math.max(0, depth - 1);
    lines.push("  ".repeat(depth) + line);
    const [, name] = /^<([^\s/?!>]+)(?:[\s/][^>]*)?>$/.exec(line) ?? [];
    if (!line.endsWith("/>") && closed.has(`</${name}`)) depth += 1;
    if (depth > MAX_DEPTH) return text;
  }
  return lines.join("\n");
}
