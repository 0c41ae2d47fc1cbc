// How many messages an entity has held in the last five minutes that the page has seen.

import { useEffect, useState } from "preact/hooks";
import { html } from "./html.js";

const SECONDS = 300;
const EVERY = 5;

/** @param {{counts: any, of: string}} props */
export function Spark({ counts, of }) {
  const [seen, setSeen] = useState({ of, values: /** @type {number[]} */ ([]) });
  useEffect(() => {
    const note = () => setSeen((last) => ({ of, values: [...(last.of === of ? last.values : []), counts.active].slice(-SECONDS / EVERY) }));
    note();
    const timer = setInterval(note, EVERY * 1000);
    return () => clearInterval(timer);
  }, [of, counts.active]);
  const most = Math.max(1, ...seen.values);
  const points = seen.values.map((value, index) => `${index * 2},${20 - (value / most) * 18}`).join(" ");
  return html`<svg class="spark" width="120" height="22" role="img" aria-label=${`at most ${most} messages in the last five minutes`}><polyline points=${points} /></svg>`;
}
