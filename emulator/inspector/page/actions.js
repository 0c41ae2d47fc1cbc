// Actions on messages: send, resubmit, dead-letter, delete and others.

import { useEffect, useState } from "preact/hooks";
import { navigate } from "./route.js";
import { useRequest } from "./request.js";
import { bytes, count, splitAddress, utf8 } from "./format.js";
import { html } from "./html.js";
import { parseTyped } from "./json.js";
import { Confirm, Dialog } from "./components.js";
import { findMessages } from "./search.js";
import { namespace, notice, perform, request, showErrors, source } from "./state.js";

/** The maximum number of messages per action. */
const LIMIT = 1000;

/** Returns the notice for an action. @param {string} done @returns {(answer: any) => import("./state.js").Notice} */
function resultNotice(done) {
  return ({ done: succeeded = [], failed = [] }) => {
    const error = failed.length > 0 && `${count(failed.length, "message")} failed: ${failed[0].message}`;
    return { text: [`${done} ${count(succeeded.length, "message")}`, error].filter(Boolean).join("; "), bad: failed.length > 0 };
  };
}

/** Actions on all messages that match the filters of the list, and are in an entity of this kind. @param {{path: string, criteria: import("./search.js").Criteria, kind?: string}} props */
export function ListActions({ path, criteria, kind }) {
  const [pending, setPending] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const { data } = useRequest("/messages", { entity: path, limit: 1 });
  if (source.recorded) return null;
  const [entity, subQueue] = splitAddress(path);
  const filters = describeCriteria(criteria);
  // These cannot be dead-lettered; a topic itself holds no others.
  const onlyScheduled = kind === "topic" || criteria.state === "scheduled";
  const post = (/** @type {string} */ act) => (/** @type {number[]} */ numbers) => request("POST", "/messages/act", { body: { entity: path, numbers, act } });
  const actions = [
    { title: "Delete", run: post("delete"), done: "Deleted" },
    ...(subQueue
      ? [{ title: "Resubmit", run: (/** @type {number[]} */ numbers) => request("POST", "/messages/resubmit", { body: { entity: path, numbers } }), done: "Resubmitted" }]
      : onlyScheduled
        ? []
        : [{ title: "Dead-letter", run: post("dead-letter"), done: "Dead-lettered" }]),
  ];
  // The action gets sequence numbers, so that it does not apply to messages that arrive while the dialog is open.
  const prepare = async (/** @type {any} */ action) => {
    setBusy(true);
    const found = await showErrors(() => findMessages(path, criteria, LIMIT));
    setBusy(false);
    if (found?.rows.length === 0) notice.value = { text: "No messages match the filters.", bad: false };
    else if (found) setPending({ ...action, more: found.more, numbers: found.rows.map((/** @type {any} */ it) => it.sequence_number) });
  };
  const confirmed = () => perform(resultNotice(pending.done), () => pending.run(pending.numbers));
  const question = () => {
    const number = pending.numbers.length;
    const which = `${pending.more ? "the first " : filters || number === 1 ? "" : "all "}${count(number, filters ? "matching message" : "message")}`;
    const queue = subQueue ? `the ${subQueue.replace("transfer-", "transfer ")} queue of ${entity}` : entity;
    return `${pending.title} ${which} in ${queue}${filters}?${pending.more ? " The other messages stay unchanged." : ""}`;
  };
  return html`
    <div class="bar" role="group" aria-label="Actions on all listed messages">
      ${actions.map((action) => html`<button disabled=${!data?.total || busy} onClick=${() => prepare(action)}>${action.title} ${filters ? "matching" : "all"}…</button>`)}
    </div>
    ${pending && html`<${Confirm} title=${`${pending.title} messages`} action=${pending.title} close=${() => setPending(null)} onConfirm=${confirmed} question=${question()} />`}`;
}

/** @param {import("./search.js").Criteria} criteria */
function describeCriteria({ state, where, body_contains }) {
  const all = [state && `state: ${state}`, where && `SQL filter: ${where}`, body_contains && `body contains: ${body_contains}`].filter(Boolean);
  return all.length > 0 ? ` (${all.join("; ")})` : "";
}

/** Actions on one message. @param {{path: string, summary: any, edit: () => void}} props */
export function MessageActions({ path, summary, edit }) {
  const [deleting, setDeleting] = useState(false);
  if (source.recorded) return null;
  const numbers = [summary.sequence_number];
  const [, subQueue] = splitAddress(path);
  const run = (/** @type {string} */ act, /** @type {string} */ done) => () =>
    perform(resultNotice(done), () => request("POST", "/messages/act", { body: { entity: path, numbers, act } }));
  const resubmit = () => perform(resultNotice("Resubmitted"), () => request("POST", "/messages/resubmit", { body: { entity: path, numbers } }));
  const is = (/** @type {string[]} */ ...states) => states.includes(summary.state);
  return html`
    <div class="bar" role="group" aria-label="Message actions">
      ${subQueue && html`<button onClick=${resubmit}>Resubmit</button>`}
      <button onClick=${edit}>${subQueue ? "Repair and resubmit…" : "Edit and send a copy…"}</button>
      ${is("locked") && html`<button onClick=${run("lose-lock", "Expired the lock of")}>Expire lock</button>`}
      ${is("scheduled", "deferred") && html`<button onClick=${run("activate", "Activated")}>Activate</button>`}
      ${!subQueue && is("active", "deferred") && html`<button onClick=${run("dead-letter", "Dead-lettered")}>Dead-letter</button>`}
      <button onClick=${() => setDeleting(true)}>Delete…</button>
    </div>
    ${deleting && html`<${Confirm} title="Delete message" action="Delete" close=${() => setDeleting(false)} onConfirm=${run("delete", "Deleted")}
      question=${`Delete message ${summary.sequence_number} from ${path}?${subQueue ? "" : " It is not moved to the dead-letter queue."}`} />`}`;
}

/** Edits a message and sends it again. @param {{path: string, content: any, close: () => void}} props */
export function ResubmitDialog({ path, content, close }) {
  const { amqp, ...message } = content.message;
  const [entity, subQueue] = splitAddress(path);
  const [text, setText] = useState(JSON.stringify(withTextBody(message), null, 2));
  const [to, setTo] = useState(entity);
  const topic = entity.split(/\/Subscriptions\//i)[0];
  const [error, setError] = useState("");
  const send = async () => {
    let edited;
    try {
      edited = parseTyped(text);
    } catch (error) {
      setError(`The message is not valid: ${/** @type {Error} */ (error).message}`);
      return;
    }
    const numbers = [content.summary.sequence_number];
    const body = { entity: path, numbers, to: subQueue && to === entity ? undefined : to, edit: changes(withTextBody(message), edited), keep_original: !subQueue };
    if (await perform(resultNotice("Resubmitted"), () => request("POST", "/messages/resubmit", { body }))) {
      close();
      if (subQueue) navigate({ namespace: namespace.value, entity, subQueue });
    }
  };
  return html`
    <${Dialog} title=${subQueue ? "Repair and resubmit" : "Edit and send a copy"} close=${close}>
      <label>To <input value=${to} onInput=${(/** @type {any} */ e) => setTo(e.currentTarget.value)} /></label>
      ${topic !== entity && html`<p class="muted">
        ${to === entity ? "The message is sent to this subscription only (emulator only). " : ""}
        ${to === entity
          ? html`<button onClick=${() => setTo(topic)}>Send to topic ${topic} instead</button>`
          : html`<button onClick=${() => setTo(entity)}>Send to this subscription only</button>`}
      </p>`}
      ${topic !== entity && to === topic && html`<${MatchingSubscriptions} topic=${topic} text=${text} />`}
      <label>Message <textarea class="code" rows="18" spellcheck="false" value=${text} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)}></textarea></label>
      ${error && html`<p class="bad" role="alert">${error}</p>`}
      <div class="buttons"><button onClick=${close}>Cancel</button><button class="primary" onClick=${send}>Send</button></div>
    <//>`;
}

/** The number of subscriptions that a message matches. @param {{topic: string, text: string}} props */
function MatchingSubscriptions({ topic, text }) {
  const [result, setResult] = useState("");
  useEffect(() => {
    let mounted = true;
    const explain = async () => {
      const { subscriptions } = await request("POST", "/explain", { query: { topic }, body: parseTyped(text) });
      const matched = subscriptions.filter((/** @type {any} */ it) => it.matched);
      return matched.length ? `The message matches ${count(matched.length, "subscription")}.` : "The message matches no subscription, so the topic discards it.";
    };
    explain().catch(() => "").then((it) => mounted && setResult(it));
    return () => {
      mounted = false;
    };
  }, [topic, text]);
  return result && html`<p class="note" role="status">${result}</p>`;
}

/** Returns the message with its body as text if that is UTF-8. @param {any} message */
function withTextBody(message) {
  const text = message.body?.data ? utf8(bytes(...message.body.data)) : null;
  return text === null ? message : { ...message, body: { text } };
}

/** Returns the changes of a message as the control API merges them: changed members of sections, and a changed body, as a whole. @param {any} from @param {any} to @returns {any} */
function changes(from, to) {
  if (!isObject(to)) return to;
  const section = (/** @type {any} */ before, /** @type {any} */ after, /** @type {string} */ name) =>
    name !== "body" && isObject(before) && isObject(after) ? changed(before, after, (_, member) => member) : after;
  return changed(from, to, section);
}

/** Returns the members that differ; null for those that are missing. @param {any} from @param {any} to @param {(before: any, after: any, name: string) => any} change */
function changed(from, to, change) {
  const names = Object.keys({ ...from, ...to }).filter((name) => JSON.stringify(from[name]) !== JSON.stringify(to[name]));
  return Object.fromEntries(names.map((name) => [name, change(from[name], to[name] ?? null, name)]));
}

/** @param {any} value */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Sends or schedules a new message. @param {{path: string}} props */
export function Send({ path }) {
  const [open, setOpen] = useState(false);
  const [entity, subQueue] = splitAddress(path);
  if (source.recorded || subQueue) return null;
  const to = entity.split(/\/Subscriptions\//i)[0];
  const send = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const field = (/** @type {string} */ name) => String(form.get(name) ?? "") || undefined;
    /** @type {any} */
    const message = { body: { text: field("body") ?? "" }, properties: { message_id: field("id"), subject: field("subject"), content_type: field("type"), group_id: field("session") } };
    try {
      if (field("properties")) message.application_properties = parseTyped(field("properties") ?? "{}");
    } catch (error) {
      notice.value = { text: `The application properties are not valid: ${/** @type {Error} */ (error).message}`, bad: true };
      return;
    }
    const after = Number(field("after") ?? 0);
    const post = async () => {
      if (after > 0) {
        const clock = await request("GET", "/clock");
        message.message_annotations = { "x-opt-scheduled-enqueue-time": { timestamp: Math.round(Date.parse(clock.now) + after * 1000) } };
      }
      return request("POST", "/messages", { query: { entity: to }, body: message });
    };
    if (await perform(after > 0 ? "Scheduled 1 message" : "Sent 1 message", post)) setOpen(false);
  };
  return html`
    <button onClick=${() => setOpen(true)}>Send…</button>
    ${open && html`<${Dialog} title=${`Send to ${to}`} close=${() => setOpen(false)}>
      <form class="fields" onSubmit=${send}>
        <label>Body <textarea class="code" name="body" rows="6"></textarea></label>
        <label>Message ID <input name="id" placeholder="generated" /></label>
        <label>Subject <input name="subject" /></label>
        <label>Content type <input name="type" value="application/json" /></label>
        <label>Session ID <input name="session" /></label>
        <label>Application properties <input class="code" name="properties" placeholder=${'{"color": "red", "price": 12}'} /></label>
        <label>Enqueue after (seconds) <input name="after" type="number" min="0" step="any" /></label>
        <div class="buttons"><button type="button" onClick=${() => setOpen(false)}>Cancel</button><button class="primary">Send</button></div>
      </form>
    <//>`}`;
}
