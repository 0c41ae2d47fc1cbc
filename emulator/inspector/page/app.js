// The page: the header with the clock, the tree of entities, and the view of the route.

import { render } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { navigate, route } from "./route.js";
import { useRequest } from "./request.js";
import { ClockBar, step } from "./clock.js";
import { Connections } from "./connections.js";
import { Entity } from "./entity.js";
import { Faults } from "./faults.js";
import { count, time } from "./format.js";
import { html } from "./html.js";
import { Message } from "./message.js";
import { Dialog, Link, Placeholder, save } from "./components.js";
import { TimelineView } from "./timeline-view.js";
import { Rules } from "./rules.js";
import { changesError, loadNamespaces, namespace, namespaces, notice, offlineSince, request, showErrors, source, start } from "./state.js";
import { Tree } from "./tree.js";

/** @type {[any, string][]} */
const VIEWS = [["record", "Timeline"], ["rules", "Rules"], ["faults", "Faults"], ["connections", "Connections"]];
// Views that need a running emulator.
const LIVE = ["rules"];
/** @type {Record<string, any>} */
const COMPONENTS = { namespace: Overview, entity: Entity, record: TimelineView, rules: Rules, faults: Faults, connections: Connections };
/** @type {[string, string][]} */
const SHORTCUTS = [["/", "Filter entities"], ["j, k or arrow keys", "Go to the next or previous row"], ["Enter", "Open the row"], ["Esc", "Close the message"], [".", "Advance the clock to the next due event"], ["?", "Show keyboard shortcuts"]];

function App() {
  const [help, setHelp] = useState(false);
  useShortcuts(() => setHelp(true));
  const { view, item, tab } = route.value;
  const message = view === "entity" && tab === "messages" && item !== undefined;
  return html`
    <header class="top">
      <${Link} to=${{}} class="home">Service Bus emulator<//>
      <select aria-label="Namespace" value=${namespace.value} onPointerEnter=${refresh} onFocus=${refresh} onChange=${(/** @type {any} */ e) => navigate({ namespace: e.currentTarget.value })}>
        ${[...new Set([...namespaces.value, namespace.value])].filter(Boolean).map((name) => html`<option>${name}</option>`)}
      </select>
      <nav aria-label="Views of the namespace">${VIEWS.filter(([name]) => !source.recorded || !LIVE.includes(name)).map(([name, title]) => html`<${Link} to=${{ view: name }} class=${view === name ? "selected" : ""}>${title}<//>`)}</nav>
      <${ClockBar} />
      <button onClick=${() => setHelp(true)} aria-label="Keyboard shortcuts">?</button>
    </header>
    <${Notices} />
    <div class=${message ? "body with-message" : "body"}>
      <${Tree} />
      <main><${Boundary}><${COMPONENTS[view]} /><//></main>
      ${message && html`<aside aria-label="Message"><${Boundary} key=${item}><${Message} /><//></aside>`}
    </div>
    ${help && html`<${Dialog} title="Keyboard shortcuts" close=${() => setHelp(false)}>
      <dl class="properties">${SHORTCUTS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
      <div class="buttons"><button onClick=${() => setHelp(false)}>Close</button></div>
    <//>`}`;
}

/** Shows a view, or until the next route the error if it cannot be rendered. @param {{children?: any}} props */
function Boundary({ children }) {
  const [error, reset] = useErrorBoundary();
  useEffect(reset, [route.value]);
  return error ? html`<p class="bad" role="alert">The page cannot show this: ${error.message}</p>` : children;
}

/** Reloads the namespaces: the changes of a namespace do not report others. */
function refresh() {
  loadNamespaces().catch(() => {});
}

function Notices() {
  const current = notice.value;
  const since = offlineSince.value;
  useEffect(() => {
    if (!current || current.bad) return;
    const timer = setTimeout(() => { notice.value = null; }, 4000);
    return () => clearTimeout(timer);
  }, [current]);
  return html`
    ${source.report && html`<${Failure} report=${source.report} />`}
    ${since !== null && html`<p class="note" role="status">The emulator is not responding. Data as of ${time(since)} UTC.</p>`}
    ${changesError.value && html`<p class="note" role="status">Live updates are unavailable: ${changesError.value}</p>`}
    <div aria-live="polite">${current && html`<p class=${current.bad ? "bad" : "good"}>${current.text} <button class="close" aria-label="Dismiss" onClick=${() => { notice.value = null; }}>✕</button></p>`}</div>`;
}

/** The failure of the test whose report the page shows. @param {{report: import("./source.js").Report}} props */
function Failure({ report }) {
  return html`
    <details class="failure" open>
      <summary>${report.test} failed. This read-only report shows the namespace at the time of the failure.</summary>
      <pre tabindex="0" role="region" aria-label="Failure">${report.failure ?? "The output of the test run contains the failure."}</pre>
      <p><a href=${report.fragment}>Show the entity or message of the failure</a></p>
    </details>`;
}

function Overview() {
  const answer = useRequest("/entities", { order: "dead-letter", limit: 10 });
  const { data } = answer;
  const deadLettered = (data?.entities ?? []).filter((/** @type {any} */ it) => it.counts.dead_letter > 0);
  const exportTopology = () => showErrors(async () => save(`${namespace.value}.json`, JSON.stringify(await request("GET", "/topology"), null, 2)));
  return html`
    <header class="bar"><h1>${namespace.value}</h1>${!source.recorded && html`<button onClick=${exportTopology}>Export topology</button>`}</header>
    ${data ? html`<p class="muted">${count(data.total, "entity", "entities")}. Select one to view its messages.</p>` : html`<${Placeholder} answer=${answer} />`}
    ${deadLettered.length > 0 && html`<h2>Dead-letter messages</h2>
      <ul>${deadLettered.map((/** @type {any} */ it) => html`<li><${Link} to=${{ entity: it.path, subQueue: "dead-letter" }}>${it.path}<//>: ${count(it.counts.dead_letter, "message")}</li>`)}</ul>`}`;
}

/** @param {() => void} showHelp */
function useShortcuts(showHelp) {
  useEffect(() => {
    const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") document.getElementById("filter")?.focus();
      else if (event.key === ".") step();
      else if (event.key === "?") showHelp();
      else if (event.key === "Escape" && route.value.tab === "messages" && route.value.item !== undefined) {
        navigate({ ...route.value, tab: "", item: undefined });
        /** @type {HTMLElement | null} */ (document.querySelector("main .list"))?.focus();
      } else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

await start();
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
app.replaceChildren();
render(html`<${App} />`, app);
