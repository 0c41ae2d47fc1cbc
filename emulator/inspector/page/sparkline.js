// A sparkline of an entity's active messages, over the last five minutes while the page showed the entity.

import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "./html.js";

const SECONDS = 300;
const INTERVAL = 5;

/** @param {{counts: any, path: string}} props */
export function Sparkline({ counts, path }) {
  const [samples, setSamples] = useState({ path, values: /** @type {number[]} */ ([]) });
  const active = useRef(0);
  active.current = counts.active;
  useEffect(() => {
    const sample = () => setSamples((last) => ({ path, values: [...(last.path === path ? last.values : []), active.current].slice(-SECONDS / INTERVAL) }));
    sample();
    const timer = setInterval(sample, INTERVAL * 1000);
    return () => clearInterval(timer);
  }, [path]);
  const maximum = Math.max(1, ...samples.values);
  const points = samples.values.map((value, index) => `${index * 2},${20 - (value / maximum) * 18}`).join(" ");
  return html`<svg class="sparkline" width="120" height="22" role="img" aria-label=${`At most ${maximum} active messages in the last five minutes`}><polyline points=${points} /></svg>`;
}
