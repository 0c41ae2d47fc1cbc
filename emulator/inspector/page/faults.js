// Fault injection: the faults that are set, how often each was applied, and a form to add one.

import { useRequest } from "./request.js";
import { html } from "./html.js";
import { Placeholder } from "./components.js";
import { perform, request, source } from "./state.js";

const OPERATIONS = ["send", "receive", "settle", "complete", "abandon", "dead-letter", "defer", "renew-lock", "attach", "connect", "token", "management", "discharge", "http"];
const EFFECTS = ["lose-reply", "reject", "answer", "detach", "close", "drop", "delay", "hold-back", "lose-lock", "lose-session-lock", "deliver-twice", "expire-token", "stall", "crash", "failover", "postpone", "elsewhere", "round-trip"];

export function Faults() {
  const answer = useRequest("/faults");
  if (!answer.data) return html`<${Placeholder} answer=${answer} />`;
  const remove = (/** @type {number} */ id) => () => perform(`Removed fault ${id}`, () => request("DELETE", `/faults/${id}`));
  return html`
    <header class="bar"><h1>Faults</h1></header>
    ${answer.data.faults.length === 0
      ? html`<p class="empty">There are no faults.</p>`
      : html`<table>
          <caption class="visually-hidden">Faults</caption>
          <thead><tr><th>ID</th><th>Operation</th><th>Conditions</th><th>Effect</th><th>Matched</th><th>Applied</th><th></th></tr></thead>
          <tbody>${answer.data.faults.map((/** @type {any} */ it) => html`
            <tr>
              <td>${it.id}</td><td class="short">${it.operation}</td><td>${conditions(it)}</td><td><code>${JSON.stringify(it.effect ?? it.effects)}</code></td>
              <td>${it.matched}</td><td>${it.hits}</td>
              <td>${!source.recorded && html`<button onClick=${remove(it.id)} aria-label=${`Remove fault ${it.id}`}>Remove</button>`}</td>
            </tr>`)}</tbody>
        </table>`}
    ${!source.recorded && html`<${AddFault} />`}`;
}

/** @param {any} fault */
function conditions(fault) {
  const { id, operation, effect, effects, matched, elsewhere, different, hits, nth, every, times, random, ...rest } = fault;
  const matchers = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  const counts = [nth > 1 && `from the ${ordinal(nth)} on`, every > 1 && `every ${ordinal(every)}`, times === 1 ? "once" : times && `${times} times`];
  const selection = random ? `with probability ${random.probability}` : counts.filter(Boolean).join(", ");
  return [...matchers.map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`), selection].filter(Boolean).join(", ");
}

/** @param {number} n */
function ordinal(n) {
  const end = n % 100 > 10 && n % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${end}`;
}

function AddFault() {
  const add = async (/** @type {any} */ event) => {
    event.preventDefault();
    const form = event.currentTarget;
    const values = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
    await perform("Added the fault", async () => {
      const { details, effect, nth, times, ...rest } = values;
      const body = { ...rest, nth: nth && Number(nth), times: times && Number(times), effect: details ? { [String(effect)]: JSON.parse(String(details)) } : effect };
      await request("POST", "/faults", { body });
      form.reset();
    });
  };
  return html`
    <h2>Add fault</h2>
    <form class="fields" onSubmit=${add}>
      <label>Operation <select name="operation">${OPERATIONS.map((it) => html`<option>${it}</option>`)}</select></label>
      <label>Effect <select name="effect">${EFFECTS.map((it) => html`<option>${it}</option>`)}</select></label>
      <label>Details (JSON) <input class="code" name="details" placeholder=${'{"condition": "com.microsoft:server-busy"}'} /></label>
      <label>Entity <input name="entity" placeholder="any" /></label>
      <label>Client <input name="client" placeholder="any" /></label>
      <label>Message ID <input name="message_id" placeholder="any" /></label>
      <label>Start at match <input name="nth" type="number" min="1" placeholder="1" /></label>
      <label>Times <input name="times" type="number" min="1" placeholder="1" /></label>
      <div class="buttons"><button class="primary">Add</button></div>
    </form>`;
}
