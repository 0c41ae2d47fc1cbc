// The record of the namespace: its newest events, or those of one message.

import { go, place } from "./address.js";
import { useAnswer } from "./ask.js";
import { html } from "./html.js";
import { Waiting } from "./parts.js";
import { NEWEST, Story, Table } from "./story.js";

export function RecordView() {
  const { query } = place.value;
  const search = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value)]);
    go({ ...place.value, query: Object.fromEntries(given.filter(([, value]) => value)) });
  };
  return html`
    <header class="bar"><h1>Record</h1>
      <form class="bar" onSubmit=${search}>
        <label>Message id <input name="message_id" value=${query.message_id ?? ""} /></label>
        <label>Entity <input name="entity" value=${query.entity ?? ""} /></label>
        <button>Show</button>
      </form>
    </header>
    ${query.message_id ? html`<${Story} query=${query} />` : html`<${Tail} entity=${query.entity} />`}`;
}

/** @param {{entity?: string}} props */
function Tail({ entity }) {
  const answer = useAnswer("/timeline", { entity, limit: NEWEST, order: "newest" });
  if (!answer.data) return html`<${Waiting} answer=${answer} />`;
  const events = answer.data.events.slice(-NEWEST);
  if (events.length === 0) return html`<p class="empty">Nothing has happened yet.</p>`;
  return html`<p class="muted">The newest ${events.length} events, oldest first.</p><${Table} events=${events} />`;
}
