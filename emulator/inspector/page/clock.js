// The bar of the clock: what it shows, what happens next, and moving there.

import { useState } from "preact/hooks";
import { instant, span } from "./format.js";
import { html } from "./html.js";
import { Go, useNow } from "./parts.js";
import { act, ask, latest, source } from "./state.js";

/** Steps to what is due next. */
export function step() {
  return act("Stepped to what was due", () => ask("POST", "/clock/advance", { body: { to: "next" } }));
}

export function ClockBar() {
  const now = useNow();
  const [seconds, setSeconds] = useState("60");
  const clock = latest.value?.clock;
  if (!clock || now === null) return html`<div class="clock"></div>`;
  const next = latest.value.due;
  const post = (/** @type {string} */ what, /** @type {any} */ body) => ask("POST", `/clock/${what}`, { body });
  const advance = (/** @type {Event} */ event) => {
    event.preventDefault();
    const by = Number(seconds);
    act(`The clock went on by ${span(by)}`, () => post("advance", { seconds: by }));
  };
  return html`
    <section class="clock" aria-label="Clock">
      <span class="now" title=${instant(now)}>${instant(now).slice(0, 19)}</span>
      ${clock.offset_seconds !== 0 && html`<span class="muted">${span(Math.abs(clock.offset_seconds))} ${clock.offset_seconds < 0 ? "behind" : "ahead"}</span>`}
      ${clock.frozen && html`<span class="badge">frozen</span>`}
      ${clock.auto && html`<span class="badge">steps by itself</span>`}
      ${next && html`<span class="due"><${Due} due=${next} now=${now} /></span>`}
      ${!source.recorded && html`
        <button onClick=${step} disabled=${!next} title="Move the clock to what is due next (.)">Step</button>
        <form onSubmit=${advance}>
          <label>Advance by <input type="number" min="0" step="any" required value=${seconds} onInput=${(/** @type {any} */ e) => setSeconds(e.currentTarget.value)} /> s</label>
          <button>Advance</button>
        </form>
        ${clock.frozen
          ? html`<button onClick=${() => act("The clock runs", () => post("resume", undefined))}>Resume</button>`
          : html`<button onClick=${() => act("The clock stands still", () => post("freeze", undefined))}>Freeze</button>`}`}
    </section>`;
}

/** `lock of 17 ends in 42 s`. @param {{due: any, now: number}} props */
export function Due({ due, now }) {
  const what = String(due.kind).replaceAll("-", " ");
  const message = due.sequence_number !== undefined && due.sequence_number !== null && due.entity;
  return html`${what}${message && html` of <${Go} to=${{ entity: due.entity, tab: "messages", item: String(due.sequence_number) }}>${due.sequence_number}<//>`}
    ${due.entity && html` in ${due.entity}`} in ${span(Math.max(0, (Date.parse(due.at) - now) / 1000))}`;
}
