// The connections of clients and their links.

import { useRequest } from "./request.js";
import { html } from "./html.js";
import { Placeholder } from "./components.js";
import { EntityLink } from "./timeline.js";

export function Connections() {
  const answer = useRequest("/connections");
  if (!answer.data) return html`<${Placeholder} answer=${answer} />`;
  const connections = answer.data.connections;
  return html`
    <header class="bar"><h1>Connections</h1></header>
    ${connections.length === 0 && html`<p class="empty">There are no connections.</p>`}
    ${connections.map((/** @type {any} */ it) => html`
      <section class="connection">
        <h2>${it.client}</h2>
        <p class="muted">${[it.product, it.transport, it.party && `key ${it.party}`].filter(Boolean).join(", ")}</p>
        <table>
          <caption class="visually-hidden">Links</caption>
          <thead><tr><th>Link</th><th>Entity</th><th>Credit</th><th>Locks held</th><th>Session</th></tr></thead>
          <tbody>${it.links.map((/** @type {any} */ link) => html`
            <tr><td>${link.role}</td><td>${link.entity ? html`<${EntityLink} address=${link.entity} />` : (link.node ?? "")}</td>
              <td>${link.credit ?? ""}</td><td>${link.locks ?? ""}</td><td>${link.session ?? ""}</td></tr>`)}</tbody>
        </table>
      </section>`)}`;
}
