// Where the parts of a message's story stand in its picture. Pure: events in, places out.

import { span } from "./format.js";

/** @typedef {{at: string, offset: number, kind: string, entity: string | null, sequence_number: number | null, message_id: string | null, client: string | null, delivery_count: number | null, locked_until: string | null, reason: string | null, detail: string | null}} Event */

export const BROKER = "broker";
const LANE = 44;
const LEFT = 150;
const TOP = 26;
const STEP = 40;
// A gap that is longer is folded: beside a lock of a minute everything else would be one dot.
const FOLD = 4;

const ENDS = new Set([
  "completed", "abandoned", "dead-lettered", "transfer-dead-lettered", "released", "deferred", "lock-expired", "expired", "removed",
  "forwarded", "deleted",
]);

/** @param {Event[]} events @param {number} now what the clock of the namespace shows, in milliseconds */
export function layout(events, now) {
  const marked = events.map((event, index) => ({ ...event, number: index + 1, time: Date.parse(event.at) }));
  const locks = locksOf(marked, now);
  const axis = axisOf([...marked.map((event) => event.time), ...locks.map((lock) => lock.to)]);
  const names = [...new Set(marked.filter((event) => event.kind !== "clock-advanced").map((event) => event.client ?? BROKER))];
  const lanes = names.map((name, index) => ({ name, y: TOP + index * LANE + LANE / 2 }));
  const y = (/** @type {string | null} */ client) => lanes.find((lane) => lane.name === (client ?? BROKER))?.y ?? TOP;
  /** @type {Map<string, number>} */
  const crowded = new Map();
  const marks = marked
    .filter((event) => event.kind !== "clock-advanced")
    .map((event) => {
      const place = `${event.time} ${event.client ?? BROKER}`;
      const beside = crowded.get(place) ?? 0;
      crowded.set(place, beside + 1);
      return { event, number: event.number, x: axis.x(event.time) + beside * 20, y: y(event.client), bad: isBad(event.kind) };
    });
  const moves = marked.filter((event) => event.kind === "clock-advanced");
  return {
    lanes,
    marks,
    locks: locks.map((lock) => ({ x: axis.x(lock.from), width: Math.max(2, axis.x(lock.to) - axis.x(lock.from)), y: y(lock.client), lost: lock.lost, held: lock.held, number: lock.number })),
    breaks: axis.breaks,
    advances: moves.map((event) => ({ x: axis.x(event.time), text: event.detail ?? "" })),
    width: Math.max(axis.width, ...marks.map((mark) => mark.x)) + 40,
    height: TOP + Math.max(1, lanes.length) * LANE + 26,
    left: LEFT,
  };
}

/** @param {string} kind */
function isBad(kind) {
  return ["dead-lettered", "transfer-dead-lettered", "expired", "lock-expired", "abandoned", "refused", "fault"].includes(kind);
}

/**
 * From each delivery under a lock to what ended it, or to when it will end.
 * @param {(Event & {number: number, time: number})[]} events @param {number} now
 */
function locksOf(events, now) {
  const locks = [];
  for (const [index, event] of events.entries()) {
    if (event.kind !== "delivered" || !event.locked_until) continue;
    let until = Date.parse(event.locked_until);
    let ended = null;
    for (const later of events.slice(index + 1)) {
      if (later.entity !== event.entity || (later.sequence_number !== event.sequence_number && later.kind !== "entity-deleted")) continue;
      if (later.kind === "lock-renewed" && later.locked_until) until = Date.parse(later.locked_until);
      if (ENDS.has(later.kind) || later.kind === "entity-deleted") {
        ended = later;
        break;
      }
    }
    const held = ended === null && until > now;
    const lost = ended === null ? !held : ended.kind === "lock-expired";
    locks.push({ from: event.time, to: ended?.time ?? until, client: event.client, lost, held, number: event.number });
  }
  return locks;
}

/** An axis on which time goes forward, and long gaps are folded. @param {number[]} times */
function axisOf(times) {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  const gaps = sorted.slice(1).map((time, index) => time - sorted[index]);
  const usual = gaps.length ? [...gaps].sort((a, b) => a - b)[Math.floor(gaps.length / 2)] : 0;
  /** @type {Map<number, number>} */
  const places = new Map();
  const breaks = [];
  let x = LEFT + 20;
  for (const [index, time] of sorted.entries()) {
    if (index > 0) {
      const gap = gaps[index - 1];
      const folded = gap > FOLD * usual && gap > 1000;
      const width = folded ? STEP * FOLD : STEP * Math.max(1, Math.min(FOLD, usual ? gap / usual : 1));
      if (folded || gap >= 1000) breaks.push({ x: x + width / 2, text: span(gap / 1000), folded });
      x += width;
    }
    places.set(time, x);
  }
  return { x: (/** @type {number} */ time) => places.get(time) ?? LEFT, width: x, breaks };
}
