// Who is connected, and what each link is for.

import { useAnswer } from "./ask.js";
import { html } from "./html.js";
import { Waiting } from "./parts.js";
import { EntityLink } from "./story.js";

export function Connections() {
  const answer = useAnswer("/connections");
  if (!answer.data) return html`<${Waiting} answer=${answer} />`;
  const connections = answer.data.connections;
  return html`
    <header class="bar"><h1>Connections</h1></header>
    ${connections.length === 0 && html`<p class="empty">No client is connected.</p>`}
    ${connections.map((/** @type {any} */ it) => html`
      <section class="connection">
        <h2>${it.client}</h2>
        <p class="muted">${[it.product, it.transport, it.party && `key ${it.party}`].filter(Boolean).join(", ")}</p>
        <table>
          <caption class="unseen">Links</caption>
          <thead><tr><th>Link</th><th>Entity</th><th>Credit</th><th>Locks held</th><th>Session</th></tr></thead>
          <tbody>${it.links.map((/** @type {any} */ link) => html`
            <tr><td>${link.role}</td><td>${link.entity ? html`<${EntityLink} address=${link.entity} />` : (link.node ?? "")}</td>
              <td>${link.credit ?? ""}</td><td>${link.locks ?? ""}</td><td>${link.session ?? ""}</td></tr>`)}</tbody>
        </table>
      </section>`)}`;
}
