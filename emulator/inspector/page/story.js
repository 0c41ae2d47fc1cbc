// The story of a message: a picture with a lane for each client and the broker, and the same as a table.

import { useRef } from "preact/hooks";
import { useAnswer } from "./ask.js";
import { instant, offset, parts, span } from "./format.js";
import { html } from "./html.js";
import { layout } from "./layout.js";
import { Go, Waiting, save } from "./parts.js";
import { latest } from "./state.js";

/** Events that are shown; the rest of the record is for the control API. */
export const NEWEST = 500;

/** @param {{query: Record<string, any>}} props which events: those of a message, an entity or all */
export function Story({ query }) {
  const answer = useAnswer("/timeline", { ...query, limit: NEWEST, order: "newest" });
  if (!answer.data) return html`<${Waiting} answer=${answer} />`;
  const { dropped, next } = answer.data;
  const events = query.message_id === undefined ? answer.data.events : about(query.message_id, answer.data.events);
  return html`
    ${next && html`<p class="muted">The newest ${NEWEST} events, oldest first.</p>`}
    ${!next && dropped > 0 && html`<p class="note">The record has dropped its ${dropped} oldest events.</p>`}
    <${Picture} events=${events} />
    <${Table} events=${events} />`;
}

/** What happened to a message, and what happened of itself where it was. @param {string} id @param {any[]} events */
function about(id, events) {
  const places = new Set(events.filter((event) => event.message_id === id).map((event) => event.entity));
  return events.filter((event) => event.message_id === id || !event.entity || places.has(event.entity));
}

/** @param {{events: import("./layout.js").Event[]}} props */
export function Picture({ events }) {
  const element = useRef(/** @type {SVGSVGElement | null} */ (null));
  if (events.length === 0) return html`<p class="empty">Nothing is on record.</p>`;
  // An event may have come since the clock was last told.
  const now = Math.max(Date.parse(latest.value?.clock?.now ?? 0), Date.parse(events[events.length - 1].at));
  const drawn = layout(events, now);
  const { lanes, marks, locks, breaks, advances, width, height, left } = drawn;
  const bottom = height - 20;
  return html`
    <div class="picture" tabindex="0" role="region" aria-label="Picture of the story">
      <svg ref=${element} xmlns="http://www.w3.org/2000/svg" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}
        role="img" aria-label=${`${events.length} events in order of time; the table below has the same`}>
        ${lanes.map((lane) => html`
          <line class="lane" x1=${left} x2=${width} y1=${lane.y} y2=${lane.y} />
          <text class="name" x="4" y=${lane.y + 4}>${short(lane.name)}<title>${lane.name}</title></text>`)}
        ${breaks.map((it) => html`
          ${it.folded && html`<path class="fold" d=${`M${it.x - 3} 20 l4 8 l-4 8 M${it.x + 3} 20 l4 8 l-4 8`} />`}
          <text class="gap" x=${it.x} y="14" text-anchor="middle">${it.text}</text>`)}
        ${advances.map((it) => html`
          <line class="advance" x1=${it.x} x2=${it.x} y1="20" y2=${bottom} />
          <text class="gap" x=${it.x} y=${height - 6} text-anchor="middle">+${it.text}<title>the clock was advanced</title></text>`)}
        ${locks.map((lock) => html`
          <rect class=${lock.lost ? "lock lost" : "lock"} x=${lock.x} y=${lock.y - 12} width=${lock.width} height="24" rx="4">
            <title>locked${lock.lost ? ", and lost" : lock.held ? ", and still held" : ""}</title>
          </rect>`)}
        ${marks.map((mark) => html`
          <g class=${mark.bad ? "mark bad" : "mark"}>
            <circle cx=${mark.x} cy=${mark.y} r="9" />
            <text x=${mark.x} y=${mark.y + 4} text-anchor="middle">${mark.number}</text>
            <title>${mark.number}: ${sentence(mark.event)}</title>
          </g>`)}
      </svg>
    </div>
    <button onClick=${() => element.current && save("story.svg", drawing(element.current), "image/svg+xml")}>Save as SVG</button>`;
}

/** A picture with its colours, which stand in the style sheet. @param {SVGSVGElement} element */
function drawing(element) {
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

/** What happened, as the table says it. @param {import("./layout.js").Event} event */
function sentence(event) {
  const lock = event.locked_until && (Date.parse(event.locked_until) - Date.parse(event.at)) / 1000;
  return [
    event.kind.replaceAll("-", " "),
    event.delivery_count && `delivery ${event.delivery_count}`,
    lock && `locked for ${span(lock)}`,
    event.reason,
    event.detail,
  ].filter(Boolean).join(", ");
}

/** A text whose long words, such as `MaxDeliveryCountExceeded`, may be broken before their capitals. @param {string} text */
function foldable(text) {
  return text.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part, index) => (index ? [html`<wbr />`, part] : [part]));
}

/** @param {{events: any[]}} props */
export function Table({ events }) {
  return html`
    <table class="events">
      <caption class="unseen">Events, oldest first</caption>
      <thead><tr><th>#</th><th>Since the start</th><th>Event</th><th>Entity</th><th>Message</th><th>By</th></tr></thead>
      <tbody>
        ${events.map((event, index) => html`
          <tr key=${event.position ?? index}>
            <td>${index + 1}</td>
            <td title=${instant(event.at)}>${offset(event.offset)}</td>
            <td>${foldable(sentence(event))}</td>
            <td>${event.entity ? html`<${EntityLink} address=${event.entity} />` : ""}</td>
            <td>${event.sequence_number !== null && event.entity ? html`<${MessageLink} event=${event} />` : (event.message_id ?? "")}</td>
            <td>${event.client ?? "broker"}</td>
          </tr>`)}
      </tbody>
    </table>`;
}

/** @param {{address: string}} props */
export function EntityLink({ address }) {
  const [entity, part] = parts(address);
  return html`<${Go} to=${{ entity, part }}>${address}<//>`;
}

/** @param {{event: any}} props */
function MessageLink({ event }) {
  const [entity, part] = parts(event.entity);
  return html`<${Go} to=${{ entity, part, tab: "messages", item: String(event.sequence_number) }}>${event.message_id ?? event.sequence_number}<//>`;
}
