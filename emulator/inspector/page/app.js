// The page: the clock above, the entities beside, and what the address asks for.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { go, place } from "./address.js";
import { useAnswer } from "./ask.js";
import { ClockBar, step } from "./clock.js";
import { Connections } from "./connections.js";
import { Entity } from "./entity.js";
import { Faults } from "./faults.js";
import { count, time } from "./format.js";
import { html } from "./html.js";
import { Message } from "./message.js";
import { Dialog, Go, Waiting, save } from "./parts.js";
import { RecordView } from "./record.js";
import { Rules } from "./rules.js";
import { ask, findNamespaces, namespace, namespaces, notice, refusal, silentSince, source, start } from "./state.js";
import { Tree } from "./tree.js";

/** @type {[any, string][]} */
const VIEWS = [["record", "Record"], ["rules", "Rules"], ["faults", "Faults"], ["connections", "Connections"]];
// What the emulator must be asked for.
const LIVE = ["rules"];
/** @type {Record<string, any>} */
const SHOWN = { namespace: Overview, entity: Entity, record: RecordView, rules: Rules, faults: Faults, connections: Connections };
/** @type {[string, string][]} */
const KEYS = [["/", "filter the entities"], ["j, k or arrows", "next and previous row"], ["Enter", "open the row"], ["Esc", "close the message"], [".", "step the clock to what is due next"], ["?", "this list"]];

function App() {
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  const { view, item, tab } = place.value;
  const message = view === "entity" && tab === "messages" && item !== undefined;
  return html`
    <header class="top">
      <${Go} to=${{}} class="home">Service Bus emulator<//>
      <select aria-label="Namespace" value=${namespace.value} onPointerEnter=${refresh} onFocus=${refresh} onChange=${(/** @type {any} */ e) => go({ namespace: e.currentTarget.value })}>
        ${[...new Set([...namespaces.value, namespace.value])].filter(Boolean).map((name) => html`<option>${name}</option>`)}
      </select>
      <nav aria-label="Views of the namespace">${VIEWS.filter(([name]) => !source.recorded || !LIVE.includes(name)).map(([name, title]) => html`<${Go} to=${{ view: name }} class=${view === name ? "chosen" : ""}>${title}<//>`)}</nav>
      <${ClockBar} />
      <button onClick=${() => setHelp(true)} aria-label="Keys">?</button>
    </header>
    <${Notices} />
    <div class=${message ? "body with-message" : "body"}>
      <${Tree} />
      <main><${SHOWN[view]} /></main>
      ${message && html`<aside aria-label="Message"><${Message} key=${item} /></aside>`}
    </div>
    ${help && html`<${Dialog} title="Keys" close=${() => setHelp(false)}>
      <dl class="facts">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
      <div class="buttons"><button onClick=${() => setHelp(false)}>Close</button></div>
    <//>`}`;
}

/** Namespaces come and go without a word to those who follow another. */
function refresh() {
  findNamespaces().catch(() => {});
}

function Notices() {
  const said = notice.value;
  const since = silentSince.value;
  useEffect(() => {
    if (!said || said.bad) return;
    const timer = setTimeout(() => { notice.value = null; }, 4000);
    return () => clearTimeout(timer);
  }, [said]);
  return html`
    ${source.told && html`<${Failure} told=${source.told} />`}
    ${since !== null && html`<p class="note" role="status">The emulator does not answer. This is what it showed at ${time(since)} UTC.</p>`}
    ${refusal.value && html`<p class="note" role="status">Changes are not followed: ${refusal.value}</p>`}
    <div aria-live="polite">${said && html`<p class=${said.bad ? "bad" : "good"}>${said.text} <button class="close" aria-label="Dismiss" onClick=${() => { notice.value = null; }}>✕</button></p>`}</div>`;
}

/** What failed; what stands below is the namespace as it was then. @param {{told: import("./source.js").Told}} props */
function Failure({ told }) {
  return html`
    <details class="failure" open>
      <summary>${told.test} failed. This is what it has left, in which nothing changes any more.</summary>
      <pre tabindex="0" role="region" aria-label="Failure">${told.failure ?? "Its text is in the output of the test run."}</pre>
      <p><a href=${told.place}>What the failure is about</a></p>
    </details>`;
}

function Overview() {
  const answer = useAnswer("/entities", { order: "dead-letter", limit: 10 });
  const { data } = answer;
  const dead = (data?.entities ?? []).filter((/** @type {any} */ it) => it.counts.dead_letter > 0);
  const topology = async () => save(`${namespace.value}.json`, JSON.stringify(await ask("GET", "/topology"), null, 2));
  return html`
    <header class="bar"><h1>${namespace.value}</h1>${!source.recorded && html`<button onClick=${topology}>Export the topology</button>`}</header>
    ${data ? html`<p class="muted">${count(data.total, "entity", "entities")}. Choose one to see its messages.</p>` : html`<${Waiting} answer=${answer} />`}
    ${dead.length > 0 && html`<h2>Dead letters</h2>
      <ul>${dead.map((/** @type {any} */ it) => html`<li><${Go} to=${{ entity: it.path, part: "dead-letter" }}>${it.path}<//>: ${count(it.counts.dead_letter, "dead letter")}</li>`)}</ul>`}`;
}

/** @param {() => void} help */
function useKeys(help) {
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") document.getElementById("filter")?.focus();
      else if (event.key === ".") step();
      else if (event.key === "?") help();
      else if (event.key === "Escape" && place.value.tab === "messages" && place.value.item !== undefined) {
        go({ ...place.value, tab: "", item: undefined });
        /** @type {HTMLElement | null} */ (document.querySelector("main .list"))?.focus();
      } else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

await start();
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
app.replaceChildren();
render(html`<${App} />`, app);
