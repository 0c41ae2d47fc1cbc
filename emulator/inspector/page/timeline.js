// A timeline of events: a diagram with a lane for the broker and for each client, and a table.

import { useRef } from "preact/hooks";
import { useRequest } from "./request.js";
import { instant, offset, splitAddress, span } from "./format.js";
import { html } from "./html.js";
import { layout } from "./layout.js";
import { Link, Placeholder, save } from "./components.js";
import { lastChange } from "./state.js";

/** The maximum number of events in a view. The control API returns the others. */
export const MAX_EVENTS = 500;

/** The events of a message, an entity or the namespace. @param {{query: Record<string, any>}} props */
export function Timeline({ query }) {
  const answer = useRequest("/timeline", { ...query, limit: MAX_EVENTS, order: "newest" });
  if (!answer.data) return html`<${Placeholder} answer=${answer} />`;
  const { dropped, next } = answer.data;
  const events = query.message_id === undefined ? answer.data.events : eventsOf(query.message_id, answer.data.events);
  return html`
    ${next && html`<p class="muted">The newest ${MAX_EVENTS} events, oldest first.</p>`}
    ${!next && dropped > 0 && html`<p class="note">The ${dropped} oldest events were dropped.</p>`}
    <${Diagram} events=${events} />
    <${EventTable} events=${events} />`;
}

/** The events of a message, and those of its entities that concern no message. @param {string} id @param {any[]} events */
function eventsOf(id, events) {
  const entities = new Set(events.filter((event) => event.message_id === id).map((event) => event.entity));
  return events.filter((event) => event.message_id === id || !event.entity || entities.has(event.entity));
}

/** @param {{events: import("./layout.js").Event[]}} props */
export function Diagram({ events }) {
  const element = useRef(/** @type {SVGSVGElement | null} */ (null));
  if (events.length === 0) return html`<p class="empty">There are no events.</p>`;
  // The newest event may be later than the last reported time.
  const now = Math.max(Date.parse(lastChange.value?.clock?.now ?? 0), Date.parse(events[events.length - 1].at));
  const { lanes, marks, locks, breaks, advances, width, height, left } = layout(events, now);
  const bottom = height - 20;
  return html`
    <div class="diagram" tabindex="0" role="region" aria-label="Timeline diagram">
      <svg ref=${element} xmlns="http://www.w3.org/2000/svg" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}
        role="img" aria-label=${`Diagram of ${events.length} events, which the table below lists`}>
        ${lanes.map((lane) => html`
          <line class="lane" x1=${left} x2=${width} y1=${lane.y} y2=${lane.y} />
          <text class="name" x="4" y=${lane.y + 4}>${short(lane.name)}<title>${lane.name}</title></text>`)}
        ${breaks.map((it) => html`
          ${it.folded && html`<path class="fold" d=${`M${it.x - 3} 20 l4 8 l-4 8 M${it.x + 3} 20 l4 8 l-4 8`} />`}
          <text class="gap" x=${it.x} y="14" text-anchor="middle">${it.text}</text>`)}
        ${advances.map((it) => html`
          <line class="advance" x1=${it.x} x2=${it.x} y1="20" y2=${bottom} />
          <text class="gap" x=${it.x} y=${height - 6} text-anchor="middle">+${it.text}<title>clock advanced</title></text>`)}
        ${locks.map((lock) => html`
          <rect class=${lock.lost ? "lock lost" : "lock"} x=${lock.x} y=${lock.y - 12} width=${lock.width} height="24" rx="4">
            <title>${lock.lost ? "lock lost" : lock.held ? "lock held" : "lock settled"}</title>
          </rect>`)}
        ${marks.map((mark) => html`
          <g class=${mark.bad ? "mark bad" : "mark"}>
            <circle cx=${mark.x} cy=${mark.y} r="9" />
            <text x=${mark.x} y=${mark.y + 4} text-anchor="middle">${mark.number}</text>
            <title>${mark.number}: ${description(mark.event)}</title>
          </g>`)}
      </svg>
    </div>
    <button onClick=${() => element.current && save("timeline.svg", toSvg(element.current), "image/svg+xml")}>Save as SVG</button>`;
}

/** Serializes the diagram, with the colours of the style sheet as attributes. @param {SVGSVGElement} element */
function toSvg(element) {
  const copy = /** @type {SVGSVGElement} */ (element.cloneNode(true));
  const [from, to] = [element.querySelectorAll("*"), copy.querySelectorAll("*")];
  for (const [index, part] of from.entries()) {
    const { fill, stroke, strokeDasharray, fontSize, fontFamily } = getComputedStyle(part);
    for (const [name, value] of Object.entries({ fill, stroke, "stroke-dasharray": strokeDasharray, "font-size": fontSize, "font-family": fontFamily })) {
      to[index].setAttribute(name, value);
    }
  }
  return new XMLSerializer().serializeToString(copy);
}

/** @param {string} name */
function short(name) {
  return name.length > 20 ? `${name.slice(0, 19)}…` : name;
}

/** The text of an event. @param {import("./layout.js").Event} event */
function description(event) {
  const lock = event.locked_until && (Date.parse(event.locked_until) - Date.parse(event.at)) / 1000;
  return [
    event.kind.replaceAll("-", " "),
    event.delivery_count && `delivery ${event.delivery_count}`,
    lock && `locked for ${span(lock)}`,
    event.reason,
    event.detail,
  ].filter(Boolean).join(", ");
}

/** A text that may wrap before the capitals of long words such as `MaxDeliveryCountExceeded`. @param {string} text */
function wrappable(text) {
  return text.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part, index) => (index ? [html`<wbr />`, part] : [part]));
}

/** @param {{events: any[]}} props */
export function EventTable({ events }) {
  /** The sequence numbers of each message id at an address. @type {Record<string, Set<number>>} */
  const numbers = {};
  for (const event of events) if (event.sequence_number !== null) (numbers[`${event.entity} ${event.message_id}`] ??= new Set()).add(event.sequence_number);
  return html`
    <table class="events">
      <caption class="visually-hidden">Events, oldest first</caption>
      <thead><tr><th>#</th><th>Time since start</th><th>Event</th><th>Entity</th><th>Message</th><th>Client</th></tr></thead>
      <tbody>
        ${events.map((event, index) => html`
          <tr key=${event.position ?? index}>
            <td>${index + 1}</td>
            <td title=${instant(event.at)}>${offset(event.offset)}</td>
            <td>${wrappable(description(event))}</td>
            <td>${event.entity ? html`<${EntityLink} address=${event.entity} />` : ""}</td>
            <td>${event.sequence_number !== null && event.entity ? html`<${MessageLink} event=${event} shared=${numbers[`${event.entity} ${event.message_id}`].size > 1} />` : (event.message_id ?? "")}</td>
            <td>${event.client ?? "broker"}</td>
          </tr>`)}
      </tbody>
    </table>`;
}

/** @param {{address: string}} props */
export function EntityLink({ address }) {
  const [entity, subQueue] = splitAddress(address);
  return html`<${Link} to=${{ entity, subQueue }}>${address}<//>`;
}

/** @param {{event: any, shared: boolean}} props `shared`: whether other messages have the same id */
function MessageLink({ event, shared }) {
  const [entity, subQueue] = splitAddress(event.entity);
  return html`<${Link} to=${{ entity, subQueue, tab: "messages", item: String(event.sequence_number) }}>${event.message_id ?? event.sequence_number}${shared && event.message_id !== null && ` (no. ${event.sequence_number})`}<//>`;
}
