// Which subscriptions of a topic would get a message, and the first part of each filter that is not true of it.

import { useEffect, useState } from "preact/hooks";
import { place } from "./address.js";
import { useAnswer } from "./ask.js";
import { html } from "./html.js";
import { exactly } from "./json.js";
import { EntityLink } from "./story.js";
import { ask } from "./state.js";

const EXAMPLE = '{"BrokerProperties": {"Label": "order"}, "UserProperties": {"color": "red", "price": 12}}';

/** All topics, which stand among the other entities. @param {string} path @param {any} query @param {AbortSignal} signal */
async function topicsOf(path, query, signal) {
  const topics = [];
  let after;
  do {
    const { entities, next } = await ask("GET", path, { query: { ...query, after }, signal });
    topics.push(...entities.filter((/** @type {any} */ it) => it.kind === "topic").map((/** @type {any} */ it) => it.path));
    after = next;
  } while (after);
  return topics;
}

export function Rules() {
  const found = useAnswer("/entities", { limit: 1000 }, { how: topicsOf });
  const topics = found.data ?? [];
  const [chosen, setChosen] = useState(place.value.query.topic ?? "");
  const [text, setText] = useState(place.value.query.message ?? EXAMPLE);
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const topic = chosen || topics[0] || "";
  useEffect(() => {
    if (!topic) return;
    let here = true;
    const timer = setTimeout(async () => {
      try {
        const data = await ask("POST", "/explain", { query: { topic }, body: [exactly(text)] });
        if (here) setAnswer({ data });
      } catch (error) {
        if (here) setAnswer({ error });
      }
    }, 200);
    return () => {
      here = false;
      clearTimeout(timer);
    };
  }, [topic, text]);
  return html`
    <header class="bar"><h1>Rules</h1></header>
    ${found.data && topics.length === 0 && html`<p class="empty">The namespace has no topics.</p>`}
    <div class="fields">
      <label>Topic <select value=${topic} onChange=${(/** @type {any} */ e) => setChosen(e.currentTarget.value)}>${topics.map((/** @type {string} */ it) => html`<option>${it}</option>`)}</select></label>
      <label>Message <textarea class="code" rows="5" spellcheck="false" value=${text} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)}></textarea></label>
    </div>
    ${answer?.error && html`<p class="bad" role="alert">${answer.error.message}</p>`}
    ${answer?.data && html`
      <table>
        <caption class="unseen">What each rule says of the message</caption>
        <thead><tr><th>Subscription</th><th>Rule</th><th>Matches</th><th>First part that is not true</th></tr></thead>
        <tbody>${answer.data.subscriptions.flatMap((/** @type {any} */ it) => it.rules.map((/** @type {any} */ rule) => html`
          <tr>
            <td><${EntityLink} address=${it.subscription} /></td>
            <td>${rule.rule}</td>
            <td>${rule.matched ? "yes" : "no"}</td>
            <td>${rule.error ?? (rule.reason ? html`<code>${rule.reason.expression}</code> is ${rule.reason.truth}: ${rule.reason.values.map((/** @type {any} */ v) => `${v.name} ${v.value}`).join(", ")}` : "")}</td>
          </tr>`))}</tbody>
      </table>`}`;
}
