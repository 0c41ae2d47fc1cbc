// Scripted faults: those that are set, how often each was applied, and a form for new ones.

import { useAnswer } from "./ask.js";
import { html } from "./html.js";
import { Waiting } from "./parts.js";
import { act, ask, source } from "./state.js";

const OPERATIONS = ["send", "receive", "settle", "complete", "abandon", "dead-letter", "defer", "renew-lock", "attach", "connect", "token", "management", "discharge", "http"];
const EFFECTS = ["lose-reply", "reject", "answer", "detach", "close", "drop", "delay", "hold-back", "lose-lock", "lose-session-lock", "deliver-twice", "expire-token", "stall", "crash", "failover", "postpone", "elsewhere", "round-trip"];

export function Faults() {
  const answer = useAnswer("/faults");
  if (!answer.data) return html`<${Waiting} answer=${answer} />`;
  const remove = (/** @type {number} */ id) => () => act("Removed the fault", () => ask("DELETE", `/faults/${id}`));
  return html`
    <header class="bar"><h1>Faults</h1></header>
    ${answer.data.faults.length === 0
      ? html`<p class="empty">No fault is set.</p>`
      : html`<table>
          <caption class="unseen">Faults</caption>
          <thead><tr><th>#</th><th>Operation</th><th>Applies where</th><th>Effect</th><th>Meant for</th><th>Applied</th><th></th></tr></thead>
          <tbody>${answer.data.faults.map((/** @type {any} */ it) => html`
            <tr>
              <td>${it.id}</td><td class="short">${it.operation}</td><td>${filters(it)}</td><td><code>${JSON.stringify(it.effect ?? it.effects)}</code></td>
              <td>${it.matched}</td><td>${it.hits}</td>
              <td>${!source.recorded && html`<button onClick=${remove(it.id)} aria-label=${`Remove fault ${it.id}`}>Remove</button>`}</td>
            </tr>`)}</tbody>
        </table>`}
    ${!source.recorded && html`<${New} />`}`;
}

/** @param {any} fault */
function filters(fault) {
  const { id, operation, effect, effects, matched, elsewhere, different, hits, nth, every, times, random, ...rest } = fault;
  const where = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  const some = [nth > 1 && `from the ${ordinal(nth)} on`, every > 1 && `every ${ordinal(every)}`, times === 1 ? "once" : times && `${times} times`];
  const pick = random ? `at random, ${random.probability}` : some.filter(Boolean).join(", ");
  return [...where.map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`), pick].filter(Boolean).join(", ");
}

/** @param {number} n */
function ordinal(n) {
  const end = n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${end}`;
}

function New() {
  const add = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const said = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
    await act("Set the fault", async () => {
      const { details, effect, nth, times, ...rest } = said;
      const body = { ...rest, nth: nth && Number(nth), times: times && Number(times), effect: details ? { [String(effect)]: JSON.parse(String(details)) } : effect };
      await ask("POST", "/faults", { body });
      form.reset();
    });
  };
  return html`
    <h2>New fault</h2>
    <form class="fields" onSubmit=${add}>
      <label>Operation <select name="operation">${OPERATIONS.map((it) => html`<option>${it}</option>`)}</select></label>
      <label>Effect <select name="effect">${EFFECTS.map((it) => html`<option>${it}</option>`)}</select></label>
      <label>Details <input class="code" name="details" placeholder=${'{"condition": "com.microsoft:server-busy"}'} /></label>
      <label>Entity <input name="entity" placeholder="any" /></label>
      <label>Client <input name="client" placeholder="any" /></label>
      <label>Message id <input name="message_id" placeholder="any" /></label>
      <label>First <input name="nth" type="number" min="1" placeholder="1" /></label>
      <label>Times <input name="times" type="number" min="1" placeholder="1" /></label>
      <div class="buttons"><button class="primary">Set</button></div>
    </form>`;
}
