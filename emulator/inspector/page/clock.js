// The clock of the namespace: its time, the next due event, and controls.

import { useState } from "preact/hooks";
import { instant, remaining, span, splitAddress } from "./format.js";
import { html } from "./html.js";
import { Link, useNow } from "./components.js";
import { perform, request, lastChange, source } from "./state.js";

/** Advances the clock to the next due event. */
export function step() {
  return perform("Advanced the clock to the next due event", () => request("POST", "/clock/advance", { body: { to: "next" } }));
}

export function ClockBar() {
  const now = useNow();
  const [seconds, setSeconds] = useState("60");
  const clock = lastChange.value?.clock;
  if (!clock || now === null) return html`<div class="clock"></div>`;
  const next = lastChange.value.due;
  const post = (/** @type {string} */ path, /** @type {any} */ body) => request("POST", `/clock/${path}`, { body });
  const advance = (/** @type {Event} */ event) => {
    event.preventDefault();
    const by = Number(seconds);
    perform(`Advanced the clock by ${span(by)}`, () => post("advance", { seconds: by }));
  };
  return html`
    <section class="clock" aria-label="Clock">
      <span class="now" title=${instant(now)}>${instant(now).slice(0, 19)}</span>
      ${clock.offset_seconds !== 0 && html`<span class="muted">${span(Math.abs(clock.offset_seconds))} ${clock.offset_seconds < 0 ? "behind" : "ahead"}</span>`}
      ${clock.frozen && html`<span class="badge">frozen</span>`}
      ${clock.auto && html`<span class="badge">automatic</span>`}
      ${next && html`<span class="due"><${Due} due=${next} now=${now} /></span>`}
      ${!source.recorded && html`
        <button onClick=${step} disabled=${!next} title="Advance the clock to the next due event (.)">Step</button>
        <form onSubmit=${advance}>
          <label>Advance by <input type="number" min="0" step="any" required value=${seconds} onInput=${(/** @type {any} */ e) => setSeconds(e.currentTarget.value)} /> s</label>
          <button>Advance</button>
        </form>
        ${clock.frozen
          ? html`<button onClick=${() => perform("Resumed the clock", () => post("resume", undefined))}>Resume</button>`
          : html`<button onClick=${() => perform("Froze the clock", () => post("freeze", undefined))}>Freeze</button>`}`}
    </section>`;
}

/** The next due event: `lock end of 17 in orders in 42 s`. @param {{due: any, now: number}} props */
export function Due({ due, now }) {
  const what = String(due.kind).replaceAll("-", " ");
  const [entity, subQueue] = splitAddress(due.entity ?? "");
  const message = due.sequence_number !== undefined && due.sequence_number !== null && due.entity;
  return html`${what}${message && html` of <${Link} to=${{ entity, subQueue, tab: "messages", item: String(due.sequence_number) }}>${due.sequence_number}<//>`}
    ${due.entity && html` in ${due.entity}`} in ${remaining(due.at, now)}`;
}
