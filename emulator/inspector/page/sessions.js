// The sessions of an entity: who holds them, what is kept with them.

import { place } from "./address.js";
import { useAnswer } from "./ask.js";
import { bytes, hex, size, span, utf8 } from "./format.js";
import { html } from "./html.js";
import { Facts, Go, Waiting, useNow } from "./parts.js";
import { act, ask, source } from "./state.js";

/** @param {{path: string}} props */
export function Sessions({ path }) {
  const answer = useAnswer("/sessions", { entity: path });
  const now = useNow();
  if (!answer.data) return html`<${Waiting} answer=${answer} />`;
  const sessions = answer.data.sessions;
  if (sessions.length === 0) return html`<p class="empty">There are no sessions here.</p>`;
  const { item } = place.value;
  const chosen = sessions.find((/** @type {any} */ it) => it.id === item);
  const lose = (/** @type {string} */ session) => () => act("Took the session's lock away", () => ask("POST", "/sessions/lose", { body: { entity: path, session } }));
  return html`
    <table>
      <caption class="unseen">Sessions</caption>
      <thead><tr><th>Session</th><th>Active</th><th>Locked</th><th>Deferred</th><th>Held by</th><th>State</th><th></th></tr></thead>
      <tbody>${sessions.map((/** @type {any} */ it) => html`
        <tr class=${it.id === item ? "chosen" : ""}>
          <td><${Go} to=${{ ...place.value, tab: "sessions", item: it.id }}>${it.id}<//></td>
          <td>${it.active}</td><td>${it.locked}</td><td>${it.deferred}</td>
          <td>${it.holder ?? ""}${it.locked_until && now !== null && html` <span class="muted">for ${span((Date.parse(it.locked_until) - now) / 1000)}</span>`}</td>
          <td>${it.state ? size(bytes(it.state).length) : ""}</td>
          <td>${it.holder && !source.recorded && html`<button onClick=${lose(it.id)}>Take the lock away</button>`}</td>
        </tr>`)}</tbody>
    </table>
    ${chosen && html`
      <h3>State of ${chosen.id}</h3>
      <${Facts} rows=${[["Size", chosen.state ? size(bytes(chosen.state).length) : "none"]]} />
      ${chosen.state && html`<pre tabindex="0">${utf8(bytes(chosen.state)) ?? hex(bytes(chosen.state))}</pre>`}`}`;
}
