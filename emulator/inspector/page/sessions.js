// The sessions of an entity with their locks and session states.

import { route } from "./route.js";
import { useRequest } from "./request.js";
import { bytes, count, hex, remaining, size, utf8 } from "./format.js";
import { html } from "./html.js";
import { MAX_ROWS, PropertyList, Link, Placeholder, useNow } from "./components.js";
import { perform, request, source } from "./state.js";

/** @param {{path: string}} props */
export function Sessions({ path }) {
  const answer = useRequest("/sessions", { entity: path });
  if (!answer.data) return html`<${Placeholder} answer=${answer} />`;
  const sessions = answer.data.sessions;
  if (sessions.length === 0) return html`<p class="empty">There are no sessions.</p>`;
  const { item } = route.value;
  const selected = sessions.find((/** @type {any} */ it) => it.id === item);
  const expireLock = (/** @type {string} */ session) => () => perform("Expired the session lock", () => request("POST", "/sessions/lose", { body: { entity: path, session } }));
  return html`
    <table>
      <caption class="visually-hidden">Sessions</caption>
      <thead><tr><th>Session</th><th>Active</th><th>Locked</th><th>Deferred</th><th>Locked by</th><th>State size</th><th></th></tr></thead>
      <tbody>${sessions.slice(0, MAX_ROWS).map((/** @type {any} */ it) => html`
        <tr class=${it.id === item ? "selected" : ""}>
          <td><${Link} to=${{ ...route.value, tab: "sessions", item: it.id }}>${it.id}<//></td>
          <td>${it.active}</td><td>${it.locked}</td><td>${it.deferred}</td>
          <td>${it.holder ?? ""}${it.locked_until && html`<${Remaining} until=${it.locked_until} />`}</td>
          <td>${stateSize(it.state)}</td>
          <td>${it.holder && !source.recorded && html`<button onClick=${expireLock(it.id)}>Expire lock</button>`}</td>
        </tr>`)}</tbody>
    </table>
    ${sessions.length > MAX_ROWS && html`<p class="muted">${count(sessions.length - MAX_ROWS, "more session")} not shown.</p>`}
    ${selected && html`
      <h3>Session state of ${selected.id}</h3>
      <${PropertyList} rows=${[["Size", stateSize(selected.state) || "none"]]} />
      ${selected.state && html`<pre tabindex="0">${utf8(bytes(selected.state)) ?? hex(bytes(selected.state))}</pre>`}`}`;
}

/** The size of base64, without decoding it. @param {string | null} state */
function stateSize(state) {
  return state ? size(Math.floor((state.replace(/=+$/, "").length * 3) / 4)) : "";
}

/** The time of a lock, which alone is rendered as it passes. @param {{until: string}} props */
function Remaining({ until }) {
  const now = useNow();
  return now !== null && html` <span class="muted">for ${remaining(until, now)}</span>`;
}
