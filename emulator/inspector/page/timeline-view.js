// The timeline of the namespace: its newest events, or those of one message.

import { navigate, route } from "./route.js";
import { useRequest } from "./request.js";
import { html } from "./html.js";
import { Placeholder } from "./components.js";
import { MAX_EVENTS, Timeline, EventTable } from "./timeline.js";

export function TimelineView() {
  const { query } = route.value;
  const search = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value)]);
    navigate({ ...route.value, query: Object.fromEntries(given.filter(([, value]) => value)) });
  };
  return html`
    <header class="bar"><h1>Timeline</h1>
      <form class="bar" onSubmit=${search}>
        <label>Message ID <input name="message_id" value=${query.message_id ?? ""} /></label>
        <label>Entity <input name="entity" value=${query.entity ?? ""} /></label>
        <button>Search</button>
      </form>
    </header>
    ${query.message_id ? html`<${Timeline} query=${query} />` : html`<${LatestEvents} entity=${query.entity} />`}`;
}

/** @param {{entity?: string}} props */
function LatestEvents({ entity }) {
  const answer = useRequest("/timeline", { entity, limit: MAX_EVENTS, order: "newest" });
  if (!answer.data) return html`<${Placeholder} answer=${answer} />`;
  const events = answer.data.events.slice(-MAX_EVENTS);
  if (events.length === 0) return html`<p class="empty">There are no events.</p>`;
  return html`<p class="muted">The newest ${events.length} events, oldest first.</p><${EventTable} events=${events} />`;
}
