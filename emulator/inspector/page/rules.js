// Which rules of a topic match a message, and the first condition of each filter that is not true.

import { useEffect, useState } from "preact/hooks";
import { route } from "./route.js";
import { useRequest } from "./request.js";
import { html } from "./html.js";
import { parseExact } from "./json.js";
import { EntityLink } from "./timeline.js";
import { request } from "./state.js";

const EXAMPLE = '{"BrokerProperties": {"Label": "order"}, "UserProperties": {"color": "red", "price": 12}}';

/** Returns the paths of all topics. @param {string} path @param {any} query @param {AbortSignal} signal */
async function loadTopics(path, query, signal) {
  const topics = [];
  let after;
  do {
    const { entities, next } = await request("GET", path, { query: { ...query, after }, signal });
    topics.push(...entities.filter((/** @type {any} */ it) => it.kind === "topic").map((/** @type {any} */ it) => it.path));
    after = next;
  } while (after);
  return topics;
}

export function Rules() {
  const list = useRequest("/entities", { limit: 1000 }, { load: loadTopics });
  const topics = list.data ?? [];
  const [selected, setChosen] = useState(route.value.query.topic ?? "");
  const [text, setText] = useState(route.value.query.message ?? EXAMPLE);
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const topic = selected || topics[0] || "";
  useEffect(() => {
    if (!topic) return;
    let mounted = true;
    const timer = setTimeout(async () => {
      try {
        const data = await request("POST", "/explain", { query: { topic }, body: [parseExact(text)] });
        if (mounted) setAnswer({ data });
      } catch (error) {
        if (mounted) setAnswer({ error });
      }
    }, 200);
    return () => {
      mounted = false;
      clearTimeout(timer);
    };
  }, [topic, text]);
  return html`
    <header class="bar"><h1>Rules</h1></header>
    ${list.data && topics.length === 0 && html`<p class="empty">The namespace has no topics.</p>`}
    <div class="fields">
      <label>Topic <select value=${topic} onChange=${(/** @type {any} */ e) => setChosen(e.currentTarget.value)}>${topics.map((/** @type {string} */ it) => html`<option>${it}</option>`)}</select></label>
      <label>Message <textarea class="code" rows="5" spellcheck="false" value=${text} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)}></textarea></label>
    </div>
    ${answer?.error && html`<p class="bad" role="alert">${answer.error.message}</p>`}
    ${answer?.data && html`
      <table>
        <caption class="visually-hidden">Results of the rules</caption>
        <thead><tr><th>Subscription</th><th>Rule</th><th>Matches</th><th>First condition that is not true</th></tr></thead>
        <tbody>${answer.data.subscriptions.flatMap((/** @type {any} */ it) => it.rules.map((/** @type {any} */ rule) => html`
          <tr>
            <td><${EntityLink} address=${it.subscription} /></td>
            <td>${rule.rule}</td>
            <td>${rule.matched ? "yes" : "no"}</td>
            <td>${rule.error ?? (rule.reason ? html`<code>${rule.reason.expression}</code> is ${rule.reason.truth}: ${rule.reason.values.map((/** @type {any} */ v) => `${v.name} ${v.value}`).join(", ")}` : "")}</td>
          </tr>`))}</tbody>
      </table>`}`;
}
