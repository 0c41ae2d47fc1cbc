// The layout of the timeline diagram: coordinates computed from events.

import { span } from "./format.js";

/** @typedef {{at: string, offset: number, kind: string, entity: string | null, sequence_number: number | null, message_id: string | null, client: string | null, delivery_count: number | null, locked_until: string | null, reason: string | null, detail: string | null}} Event */

export const BROKER = "broker";
const LANE = 44;
const LEFT = 150;
const TOP = 26;
const STEP = 40;
// Gaps longer than this many median gaps are folded; otherwise a lock of a minute would compress all other events into a dot.
const FOLD = 4;

const ENDS = new Set([
  "completed", "abandoned", "dead-lettered", "transfer-dead-lettered", "released", "deferred", "lock-expired", "expired", "removed",
  "forwarded", "deleted",
]);

/** @param {Event[]} events @param {number} now the time of the namespace in milliseconds */
export function layout(events, now) {
  const numbered = events.map((event, index) => ({ ...event, number: index + 1, time: Date.parse(event.at) }));
  const locks = locksOf(numbered, now);
  const axis = axisOf([...numbered.map((event) => event.time), ...locks.map((lock) => lock.to)]);
  const names = [...new Set(numbered.filter((event) => event.kind !== "clock-advanced").map((event) => event.client ?? BROKER))];
  const lanes = names.map((name, index) => ({ name, y: TOP + index * LANE + LANE / 2 }));
  const y = (/** @type {string | null} */ client) => lanes.find((lane) => lane.name === (client ?? BROKER))?.y ?? TOP;
  /** @type {Map<string, number>} */
  const overlaps = new Map();
  const marks = numbered
    .filter((event) => event.kind !== "clock-advanced")
    .map((event) => {
      const position = `${event.time} ${event.client ?? BROKER}`;
      const overlap = overlaps.get(position) ?? 0;
      overlaps.set(position, overlap + 1);
      return { event, number: event.number, x: axis.x(event.time) + overlap * 20, y: y(event.client), bad: isBad(event.kind) };
    });
  const advances = numbered.filter((event) => event.kind === "clock-advanced");
  return {
    lanes,
    marks,
    locks: locks.map((lock) => ({ x: axis.x(lock.from), width: Math.max(2, axis.x(lock.to) - axis.x(lock.from)), y: y(lock.client), lost: lock.lost, held: lock.held, number: lock.number })),
    breaks: axis.breaks,
    advances: advances.map((event) => ({ x: axis.x(event.time), text: event.detail ?? "" })),
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
 * The locks, each from its delivery to the event that ended it, or to its expiry.
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

/** The time axis, on which long gaps are folded. @param {number[]} times */
function axisOf(times) {
  const sorted = [...new Set(times)].sort((a, b) => a - b);
  const gaps = sorted.slice(1).map((time, index) => time - sorted[index]);
  const median = gaps.length ? [...gaps].sort((a, b) => a - b)[Math.floor(gaps.length / 2)] : 0;
  /** @type {Map<number, number>} */
  const positions = new Map();
  const breaks = [];
  let x = LEFT + 20;
  for (const [index, time] of sorted.entries()) {
    if (index > 0) {
      const gap = gaps[index - 1];
      const folded = gap > FOLD * median && gap > 1000;
      const width = folded ? STEP * FOLD : STEP * Math.max(1, Math.min(FOLD, median ? gap / median : 1));
      if (folded || gap >= 1000) breaks.push({ x: x + width / 2, text: span(gap / 1000), folded });
      x += width;
    }
    positions.set(time, x);
  }
  return { x: (/** @type {number} */ time) => positions.get(time) ?? LEFT, width: x, breaks };
}
