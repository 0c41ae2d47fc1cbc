// What can be done to messages: sent, sent again, dead-lettered, deleted, and so on. More than one asks first.

import { useEffect, useState } from "preact/hooks";
import { go, place } from "./address.js";
import { useAnswer } from "./ask.js";
import { count, parts } from "./format.js";
import { html } from "./html.js";
import { exactly } from "./json.js";
import { Confirm, Dialog } from "./parts.js";
import { looked } from "./search.js";
import { act, ask, namespace, notice, source, tried } from "./state.js";

/** Messages that are acted on at once. */
const LIMIT = 1000;

/** What was done, of an answer that says it. @param {string} done @param {any} answer */
function tell(done, answer) {
  if (!answer) return;
  const failed = answer.failed ?? [];
  const problem = failed.length > 0 && `${count(failed.length, "message")} could not be: ${failed[0].message}`;
  notice.value = { text: [`${done}: ${count((answer.done ?? []).length, "message")}`, problem].filter(Boolean).join("; "), bad: failed.length > 0 };
}

/** To everything that the list shows. @param {{path: string, criteria: import("./search.js").Criteria}} props */
export function Actions({ path, criteria }) {
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const { data } = useAnswer("/messages", { entity: path, limit: 1 });
  if (source.recorded) return null;
  const [entity, part] = parts(path);
  const given = described(criteria);
  const post = (/** @type {string} */ act) => (/** @type {number[]} */ numbers) => ask("POST", "/messages/act", { body: { entity: path, numbers, act } });
  const verbs = [
    { title: "Delete", run: post("delete"), done: "Deleted" },
    part
      ? { title: "Resubmit", run: (/** @type {number[]} */ numbers) => ask("POST", "/messages/resubmit", { body: { entity: path, numbers } }), done: "Sent again" }
      : { title: "Dead-letter", run: post("dead-letter"), done: "Dead-lettered" },
  ];
  // The messages themselves are named: those that come while the dialog is open are not what was asked about.
  const prepare = async (/** @type {any} */ verb) => {
    setBusy(true);
    const found = await tried(() => looked(path, criteria, LIMIT));
    setBusy(false);
    if (found?.rows.length === 0) notice.value = { text: "No message is like that.", bad: false };
    else if (found) setAsked({ ...verb, more: found.more, numbers: found.rows.map((/** @type {any} */ it) => it.sequence_number) });
  };
  const confirmed = async () => tell(asked.done, await act(asked.done, () => asked.run(asked.numbers)));
  const which = asked && `${asked.more ? "the first" : given ? "the" : "all"} ${count(asked.numbers.length, "message")}`;
  return html`
    <div class="bar" role="group" aria-label="All messages of the list">
      ${verbs.map((verb) => html`<button disabled=${!data?.total || busy} onClick=${() => prepare(verb)}>${verb.title} ${given ? "what matches" : "all"}…</button>`)}
    </div>
    ${asked && html`<${Confirm} title=${`${asked.title} messages`} yes=${asked.title} close=${() => setAsked(null)} act=${confirmed}
      question=${`${asked.title} ${which} of ${entity}${part && ` (${part.replaceAll("-", " ")} queue)`}${given}?${asked.more ? " There are more, which stay." : ""}`} />`}`;
}

/** @param {import("./search.js").Criteria} criteria */
function described({ state, where, body_contains }) {
  const all = [state && `are ${state}`, where && `match ${where}`, body_contains && `have “${body_contains}” in their body`].filter(Boolean);
  return all.length > 0 ? ` that ${all.join(" and ")}` : "";
}

/** To one message. @param {{path: string, summary: any, edit: () => void}} props */
export function One({ path, summary, edit }) {
  const [asked, setAsked] = useState(false);
  if (source.recorded) return null;
  const numbers = [summary.sequence_number];
  const [entity, part] = parts(path);
  const run = (/** @type {string} */ verb, /** @type {string} */ done) => async () =>
    tell(done, await act(done, () => ask("POST", "/messages/act", { body: { entity: path, numbers, act: verb } })));
  const resubmit = async () => tell("Sent again", await act("Sent again", () => ask("POST", "/messages/resubmit", { body: { entity: path, numbers } })));
  const is = (/** @type {string[]} */ ...states) => states.includes(summary.state);
  return html`
    <div class="bar" role="group" aria-label="The message">
      ${part && html`<button onClick=${resubmit}>Resubmit</button>`}
      <button onClick=${edit}>${part ? "Repair and resubmit…" : "Edit a copy…"}</button>
      ${is("locked") && html`<button onClick=${run("lose-lock", "Took the lock away")}>Take the lock away</button>`}
      ${is("scheduled", "deferred") && html`<button onClick=${run("activate", "Activated")}>Activate</button>`}
      ${!part && is("active", "deferred") && html`<button onClick=${run("dead-letter", "Dead-lettered")}>Dead-letter</button>`}
      <button onClick=${() => setAsked(true)}>Delete…</button>
    </div>
    ${asked && html`<${Confirm} title="Delete the message" yes="Delete" close=${() => setAsked(false)} act=${run("delete", "Deleted")}
      question=${`Delete message ${summary.sequence_number} of ${entity}? It is not dead-lettered.`} />`}`;
}

/** Changes a message before it is sent again. @param {{path: string, held: any, close: () => void}} props */
export function Edit({ path, held, close }) {
  const { amqp, ...message } = held.message;
  const [entity, part] = parts(path);
  const [text, setText] = useState(JSON.stringify(readable(message), null, 2));
  const [to, setTo] = useState(entity);
  const topic = entity.split(/\/Subscriptions\//i)[0];
  const [problem, setProblem] = useState("");
  const send = async () => {
    let edited;
    try {
      edited = exactly(text);
    } catch (error) {
      setProblem(`this cannot be sent: ${/** @type {Error} */ (error).message}`);
      return;
    }
    const numbers = [held.summary.sequence_number];
    const body = { entity: path, numbers, to: to === entity ? undefined : to, edit: patch(readable(message), edited), keep_original: !part };
    const answer = await act("Sent again", () => ask("POST", "/messages/resubmit", { body }));
    if (answer) {
      tell("Sent again", answer);
      close();
      if (part) go({ namespace: namespace.value, entity, part });
    }
  };
  return html`
    <${Dialog} title=${part ? "Repair and resubmit" : "Send a changed copy"} close=${close}>
      <label>To <input value=${to} onInput=${(/** @type {any} */ e) => setTo(e.currentTarget.value)} /></label>
      ${topic !== entity && html`<p class="muted">
        ${to === entity ? "To this subscription alone (emulator only). " : ""}
        ${to === entity
          ? html`<button onClick=${() => setTo(topic)}>To the topic ${topic} instead</button>`
          : html`<button onClick=${() => setTo(entity)}>To this subscription alone</button>`}
      </p>`}
      ${topic !== entity && to === topic && html`<${Matching} topic=${topic} text=${text} />`}
      <label>Message <textarea class="code" rows="18" spellcheck="false" value=${text} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)}></textarea></label>
      ${problem && html`<p class="bad" role="alert">${problem}</p>`}
      <div class="buttons"><button onClick=${close}>Cancel</button><button class="primary" onClick=${send}>Send</button></div>
    <//>`;
}

/** Which subscriptions a message would come to. @param {{topic: string, text: string}} props */
function Matching({ topic, text }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    let here = true;
    const look = async () => {
      const { subscriptions } = await ask("POST", "/explain", { query: { topic }, body: JSON.parse(text) });
      const matched = subscriptions.filter((/** @type {any} */ it) => it.matched);
      return matched.length ? `It comes to ${count(matched.length, "subscription")}.` : "No rule will match: the message goes nowhere.";
    };
    look().catch(() => "").then((it) => here && setSaid(it));
    return () => {
      here = false;
    };
  }, [topic, text]);
  return said && html`<p class="note" role="status">${said}</p>`;
}

/** A message with its body as text where it is text. @param {any} message */
function readable(message) {
  const data = message.body?.data;
  if (!data) return message;
  try {
    const all = Uint8Array.from(data.map(atob).join(""), (/** @type {string} */ it) => it.charCodeAt(0));
    return { ...message, body: { text: new TextDecoder("utf-8", { fatal: true }).decode(all) } };
  } catch {
    return message;
  }
}

/** What turns one value into another (RFC 7386). @param {any} from @param {any} to @returns {any} */
export function patch(from, to) {
  if (!isObject(from) || !isObject(to)) return to;
  /** @type {Record<string, any>} */
  const changes = {};
  for (const key of Object.keys(from)) if (!(key in to)) changes[key] = null;
  for (const [key, value] of Object.entries(to)) {
    if (JSON.stringify(from[key]) !== JSON.stringify(value)) changes[key] = patch(from[key], value);
  }
  return changes;
}

/** @param {any} value */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Sends or schedules a new message. @param {{path: string}} props */
export function Send({ path }) {
  const [open, setOpen] = useState(false);
  const [entity, part] = parts(path);
  if (source.recorded || part) return null;
  const to = entity.split(/\/Subscriptions\//i)[0];
  const send = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const said = (/** @type {string} */ name) => String(form.get(name) ?? "") || undefined;
    /** @type {any} */
    const message = { body: { text: said("body") ?? "" }, properties: { message_id: said("id"), subject: said("subject"), content_type: said("type"), group_id: said("session") } };
    try {
      if (said("properties")) message.application_properties = exactly(said("properties") ?? "{}");
    } catch (error) {
      notice.value = { text: `the application properties cannot be sent: ${/** @type {Error} */ (error).message}`, bad: true };
      return;
    }
    const after = Number(said("after") ?? 0);
    if (after > 0) {
      const clock = await ask("GET", "/clock");
      message.message_annotations = { "x-opt-scheduled-enqueue-time": { timestamp: Date.parse(clock.now) + after * 1000 } };
    }
    if (await act(after > 0 ? "Scheduled" : "Sent", () => ask("POST", "/messages", { query: { entity: to }, body: message }))) setOpen(false);
  };
  return html`
    <button onClick=${() => setOpen(true)}>Send…</button>
    ${open && html`<${Dialog} title=${`Send to ${to}`} close=${() => setOpen(false)}>
      <form class="fields" onSubmit=${send}>
        <label>Body <textarea class="code" name="body" rows="6"></textarea></label>
        <label>Message id <input name="id" placeholder="one is made" /></label>
        <label>Subject <input name="subject" /></label>
        <label>Content type <input name="type" value="application/json" /></label>
        <label>Session <input name="session" /></label>
        <label>Application properties <input class="code" name="properties" placeholder=${'{"color": "red", "price": 12}'} /></label>
        <label>Schedule in seconds <input name="after" type="number" min="0" step="any" /></label>
        <div class="buttons"><button type="button" onClick=${() => setOpen(false)}>Cancel</button><button class="primary">Send</button></div>
      </form>
    <//>`}`;
}
