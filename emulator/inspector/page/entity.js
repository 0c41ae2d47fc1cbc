// An entity: its counts as filters, who receives from it, its settings, and its messages.

import { useMemo, useState } from "preact/hooks";
import { go, place } from "./address.js";
import { useAnswer } from "./ask.js";
import { address, count, size, span, time } from "./format.js";
import { html } from "./html.js";
import { List } from "./list.js";
import { Actions, Send } from "./actions.js";
import { Export } from "./export.js";
import { Facts, Go, Waiting, useNow } from "./parts.js";
import { Sessions } from "./sessions.js";
import { Spark } from "./spark.js";
import { paged } from "./paging.js";
import { columnsOf } from "./search.js";
import { ask, namespace, version } from "./state.js";
import { Story } from "./story.js";

/** The longest duration that there is, as settings have it. */
const NO_END = "P10675199DT2H48M5.4775807S";
const STATES = ["active", "locked", "deferred", "scheduled", "transfer"];

export function Entity() {
  const { entity = "", part = "", tab = "", query } = place.value;
  const path = address(entity, part);
  const found = useAnswer("/entities", { contains: entity, limit: 1000 }, { how: find });
  const row = found.data?.row;
  if (found.data && !row) return html`<p class="bad" role="alert">There is no entity ${entity} in ${namespace.value}.</p>`;
  const tabs = [["", "Messages"], ["sessions", "Sessions"], ["record", "Record"], ["settings", "Settings"]];
  return html`
    <header class="bar">
      <h1>${entity}</h1>
      ${row && html`<span class="muted">${row.kind}${row.status === "Active" ? "" : `, ${row.status}`}</span>`}
      ${row && html`<${Spark} counts=${row.counts} of=${path} />`}
    </header>
    <${Parts} row=${row} entity=${entity} part=${part} />
    <nav class="tabs" aria-label="Views of the entity">
      ${tabs.map(([name, title]) => html`<${Go} to=${{ entity, part, tab: name }} class=${(tab === "messages" ? "" : tab) === name ? "chosen" : ""}>${title}<//>`)}
    </nav>
    ${tab === "sessions" && html`<${Sessions} path=${path} />`}
    ${tab === "record" && html`<${Story} query=${{ entity: path }} />`}
    ${tab === "settings" && html`<${Settings} found=${found} />`}
    ${(tab === "" || tab === "messages") && html`<${Messages} path=${path} query=${query} row=${row} />`}`;
}

/** Looks for the entity of a name among all that contain it. @param {string} path @param {any} query @param {AbortSignal} signal */
async function find(path, query, signal) {
  let after;
  do {
    const { entities, next } = await ask("GET", path, { query: { ...query, after }, signal });
    const row = entities.find((/** @type {any} */ it) => it.path.toLowerCase() === query.contains.toLowerCase());
    if (row) return { row };
    after = next;
  } while (after);
  return {};
}

/** The entity's own messages, its dead letters, and those that could not be forwarded. @param {any} props */
function Parts({ row, entity, part }) {
  const counts = row?.counts ?? {};
  const dead = row?.kind === "topic" ? [] : [["dead-letter", "dead letters", counts.dead_letter]];
  const all = [["", "messages", counts.active + counts.scheduled + counts.transfer], ...dead, ["transfer-dead-letter", "transfer dead letters", counts.transfer_dead_letter]];
  return html`
    <div class="bar">
      <nav class="segments" aria-label="Queues of the entity">
        ${all.map(([name, title, n]) => html`<${Go} to=${{ entity, part: name }} class=${name === part ? "chosen" : ""}>${title} ${n > 0 && html`<b>${n}</b>`}<//>`)}
      </nav>
      <${Receivers} path=${address(entity, part)} />
      ${row?.forward_to && html`<span>forwards to <${Go} to=${{ entity: row.forward_to }}>${row.forward_to}<//></span>`}
    </div>`;
}

/** @param {{path: string}} props */
function Receivers({ path }) {
  const { data } = useAnswer("/receivers", { entity: path });
  if (!data) return null;
  if (data.receivers.length === 0) return html`<span class="muted">no client receives here</span>`;
  return html`<span class="muted">received by ${data.receivers.map((/** @type {any} */ it) => `${it.client} (credit ${it.credit})`).join(", ")}</span>`;
}

/** @param {{path: string, query: Record<string, string>, row: any}} props */
function Messages({ path, query, row }) {
  const [columns, setColumns] = useState(() => (localStorage.getItem(`columns ${path}`) ?? "").split(",").filter(Boolean));
  const { state = "", where = "", body = "" } = query;
  const to = (/** @type {Record<string, string>} */ change) => {
    const next = Object.fromEntries(Object.entries({ state, where, body, ...change }).filter(([, value]) => value));
    go({ ...place.value, query: next });
  };
  const criteria = { state, where, body_contains: body };
  const of = `${namespace.value} ${path} ${state} ${where} ${body} ${columns}`;
  const filtered = Boolean(where || body);
  const fetch = useMemo(() => {
    const complete = columnsOf(path, columns);
    const find = async (/** @type {any} */ query, /** @type {AbortSignal} */ signal) => {
      const answer = await ask("GET", "/messages", { query: { entity: path, ...criteria, ...query }, signal });
      return { ...answer, messages: await complete(answer.messages, signal) };
    };
    if (filtered) {
      return paged(async (from, limit, signal) => {
        const answer = await find({ from, limit }, signal);
        return { rows: answer.messages, next: answer.next };
      });
    }
    return async (/** @type {number} */ skip, /** @type {number} */ limit, /** @type {AbortSignal} */ signal) => {
      const answer = await find({ skip, limit }, signal);
      return { total: answer.total, rows: answer.messages };
    };
  }, [of]);
  const setOwn = (/** @type {any} */ event) => {
    const own = event.currentTarget.value.split(",").map((/** @type {string} */ it) => it.trim()).filter(Boolean);
    localStorage.setItem(`columns ${path}`, own.join(","));
    setColumns(own);
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    to({ where: String(form.get("where")), body: String(form.get("body")) });
  };
  return html`
    <form class="bar" onSubmit=${submit}>
      <label>State <select value=${state} onChange=${(/** @type {any} */ e) => to({ state: e.currentTarget.value })}>
        <option value="">any</option>${STATES.map((it) => html`<option>${it}</option>`)}
      </select></label>
      <label>SQL filter <input name="where" value=${where} placeholder="color = 'red' AND price > 10" /></label>
      <label>Body contains <input name="body" value=${body} /></label>
      <button>Search</button>
      <label>Columns <input value=${columns.join(", ")} placeholder="price, body.total" onChange=${setOwn} /></label>
    </form>
    <${Actions} key=${of} path=${path} criteria=${criteria} />
    <${List} label="Messages" of=${of} version=${version} columns=${shown(columns, place.value.item !== undefined)} fetch=${fetch}
      chosen=${(/** @type {any} */ row) => String(row.sequence_number) === place.value.item}
      open=${(/** @type {any} */ row) => go({ namespace: namespace.value, entity: place.value.entity, part: place.value.part, tab: "messages", item: String(row.sequence_number), query })}
      empty=${state || where || body ? "No message is like that." : "There are no messages here."} />
    <footer class="bar"><${Send} path=${path} /><${Export} path=${path} criteria=${criteria} row=${row} /></footer>`;
}

/** @param {string[]} own names of properties, or `body.` and a path in JSON @param {boolean} narrow whether a message stands beside */
function shown(own, narrow) {
  const all = [
    { title: "Number", width: "6em", kind: "number", cell: (/** @type {any} */ row) => row.sequence_number },
    { title: "Message id", width: "minmax(8em, 2fr)", cell: (/** @type {any} */ row) => row.message_id ?? "" },
    { title: "State", width: "minmax(8em, 2fr)", cell: (/** @type {any} */ row) => html`<${State} row=${row} />` },
    { title: "Enqueued", width: "8em", cell: (/** @type {any} */ row) => time(row.enqueued_at) },
    { title: "Deliveries", width: "6em", kind: "number", cell: (/** @type {any} */ row) => row.delivery_count },
    { title: "Session", width: "1fr", cell: (/** @type {any} */ row) => row.session_id ?? "" },
    { title: "Subject", width: "1fr", cell: (/** @type {any} */ row) => row.subject ?? "" },
    { title: "Size", width: "6em", kind: "number", cell: (/** @type {any} */ row) => size(row.size) },
    ...own.map((name, index) => ({ title: name, width: "1fr", cell: (/** @type {any} */ row) => row.own?.[index] ?? "" })),
  ];
  return narrow ? all.slice(0, 4) : all;
}

/** What state a message is in, and for how much longer. @param {{row: any}} props */
export function State({ row }) {
  const now = useNow();
  const left = (/** @type {string | undefined} */ at) => (at && now !== null ? ` for ${span((Date.parse(at) - now) / 1000)}` : "");
  if (row.state === "locked") return html`locked by ${row.locked_by ?? "a receiver"}${left(row.locked_until)}`;
  if (row.state === "scheduled") return html`scheduled${left(row.activates_at)}`;
  if (row.dead_letter_reason) return html`${row.state}: ${row.dead_letter_reason}`;
  return row.state;
}

/** @param {{found: {data: any, error: Error | null}}} props */
function Settings({ found }) {
  const row = found.data?.row;
  const base = row && { queue: "queues", topic: "topics", subscription: "subscriptions" }[/** @type {"queue"} */ (row.kind)];
  const path = base ? `/${base}/${row.path.split("/").map(encodeURIComponent).join("/")}` : "";
  const answer = useAnswer(path);
  const { data } = answer;
  if (!data) return html`<${Waiting} answer=${row ? answer : found} />`;
  const rows = Object.entries(data.properties ?? {}).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : value === NO_END ? "for ever" : String(value)]);
  return html`
    <${Facts} rows=${rows} />
    ${data.rules && html`<h2>Rules</h2>
      <ul>${data.rules.map((/** @type {{Name: string, Properties: any}} */ { Name, Properties: rule }) => html`<li>${Name}: <code>${rule.SqlFilter?.SqlExpression ?? rule.SqlFilter?.Selector ?? JSON.stringify(rule.CorrelationFilter ?? rule)}</code>${rule.Action && html`, then <code>${rule.Action.SqlExpression ?? JSON.stringify(rule.Action)}</code>`}</li>`)}</ul>`}
    <p class="muted">${count(row.receivers ?? 0, "receiver")}</p>`;
}
