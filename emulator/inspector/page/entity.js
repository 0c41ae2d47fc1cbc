// An entity: its messages, sessions, timeline and settings, its sub-queues and receivers.

import { useMemo, useState } from "preact/hooks";
import { navigate, route } from "./route.js";
import { useRequest } from "./request.js";
import { address, count, remaining, size, time } from "./format.js";
import { html } from "./html.js";
import { List } from "./list.js";
import { ListActions, Send } from "./actions.js";
import { Export } from "./export.js";
import { PropertyList, Link, Placeholder, useNow } from "./components.js";
import { Sessions } from "./sessions.js";
import { Sparkline } from "./sparkline.js";
import { paged } from "./paging.js";
import { customColumns } from "./search.js";
import { request, namespace, version } from "./state.js";
import { Timeline } from "./timeline.js";

/** The longest TimeSpan of .NET, which means no limit. */
const UNLIMITED = "P10675199DT2H48M5.4775807S";
/** @type {Record<string, string>} */
const KINDS = { queue: "Queue", topic: "Topic", subscription: "Subscription" };
const STATES = ["active", "locked", "deferred", "scheduled", "transfer"];

export function Entity() {
  const { entity = "", subQueue = "", tab = "", query } = route.value;
  const path = address(entity, subQueue);
  const found = useRequest("/entities", { contains: entity, limit: 1000 }, { load: find });
  const row = found.data?.row;
  if (found.data && !row) return html`<p class="bad" role="alert">There is no entity ${entity} in namespace ${namespace.value}.</p>`;
  const sessions = row?.requires_session && !subQueue ? [["sessions", "Sessions"]] : [];
  const tabs = [["", "Messages"], ...sessions, ["record", "Timeline"], ["settings", "Settings"]];
  return html`
    <header class="bar">
      <h1>${entity}</h1>
      ${row && html`<span class="muted">${row.kind}${row.status === "Active" ? "" : `, ${row.status}`}</span>`}
      ${row && html`<${Sparkline} counts=${row.counts} path=${path} />`}
    </header>
    <${SubQueues} row=${row} entity=${entity} subQueue=${subQueue} />
    <nav class="tabs" aria-label="Views of the entity">
      ${tabs.map(([name, title]) => html`<${Link} to=${{ entity, subQueue, tab: name }} class=${(tab === "messages" ? "" : tab) === name ? "selected" : ""}>${title}<//>`)}
    </nav>
    ${tab === "sessions" && html`<${Sessions} path=${path} />`}
    ${tab === "record" && html`<${Timeline} query=${{ entity: path }} />`}
    ${tab === "settings" && html`<${Settings} found=${found} />`}
    ${(tab === "" || tab === "messages") && html`<${Messages} path=${path} query=${query} row=${row} />`}`;
}

/** Finds the entity among those whose path contains the name. @param {string} path @param {any} query @param {AbortSignal} signal */
async function find(path, query, signal) {
  let after;
  do {
    const { entities, next } = await request("GET", path, { query: { ...query, after }, signal });
    const row = entities.find((/** @type {any} */ it) => it.path.toLowerCase() === query.contains.toLowerCase());
    if (row) return { row };
    after = next;
  } while (after);
  return {};
}

/** Links to the messages of the entity and of its dead-letter queues. @param {any} props */
function SubQueues({ row, entity, subQueue }) {
  const counts = row?.counts ?? {};
  const deadLetter = row?.kind === "topic" ? [] : [["dead-letter", "Dead-letter", counts.dead_letter]];
  const all = [["", KINDS[row?.kind] ?? "Entity", counts.active + counts.scheduled + counts.transfer], ...deadLetter, ["transfer-dead-letter", "Transfer dead-letter", counts.transfer_dead_letter]];
  return html`
    <div class="bar">
      <nav class="segments" aria-label="Sub-queues">
        ${all.map(([name, title, n]) => html`<${Link} to=${{ entity, subQueue: name }} class=${name === subQueue ? "selected" : ""}>${title} ${n > 0 && html`<b>${n}</b>`}<//>`)}
      </nav>
      <${Receivers} path=${address(entity, subQueue)} />
      ${row?.forward_to && html`<span>Forwards to <${Link} to=${{ entity: row.forward_to }}>${row.forward_to}<//></span>`}
    </div>`;
}

/** @param {{path: string}} props */
function Receivers({ path }) {
  const { data } = useRequest("/receivers", { entity: path });
  if (!data) return null;
  if (data.receivers.length === 0) return html`<span class="muted">No receivers</span>`;
  return html`<span class="muted">Receivers: ${data.receivers.map((/** @type {any} */ it) => `${it.client} (credit ${it.credit})`).join(", ")}</span>`;
}

/** @param {{path: string, query: Record<string, string>, row: any}} props */
function Messages({ path, query, row }) {
  const [columns, setColumns] = useState(() => (localStorage.getItem(`columns ${path}`) ?? "").split(",").filter(Boolean));
  const { state = "", where = "", body = "" } = query;
  const setFilters = (/** @type {Record<string, string>} */ change) => {
    const next = Object.fromEntries(Object.entries({ state, where, body, ...change }).filter(([, value]) => value));
    navigate({ ...route.value, query: next });
  };
  const criteria = { state, where, body_contains: body };
  const queryKey = `${namespace.value} ${path} ${state} ${where} ${body} ${columns}`;
  // The control API skips messages whether or not they match.
  const filtered = Boolean(state || where || body);
  const fetch = useMemo(() => {
    const addColumns = customColumns(path, columns);
    const find = async (/** @type {any} */ query, /** @type {AbortSignal} */ signal) => {
      const answer = await request("GET", "/messages", { query: { entity: path, ...criteria, ...query }, signal });
      return { ...answer, messages: await addColumns(answer.messages, signal) };
    };
    if (filtered) {
      return paged(async (from, limit, signal) => {
        const answer = await find({ from, limit }, signal);
        return { rows: answer.messages, next: answer.next, total: where || body ? undefined : answer.total };
      });
    }
    return async (/** @type {number} */ skip, /** @type {number} */ limit, /** @type {AbortSignal} */ signal) => {
      const answer = await find({ skip, limit }, signal);
      return { total: answer.total, rows: answer.messages };
    };
  }, [queryKey]);
  const saveColumns = (/** @type {any} */ event) => {
    const names = event.currentTarget.value.split(",").map((/** @type {string} */ it) => it.trim()).filter(Boolean);
    localStorage.setItem(`columns ${path}`, names.join(","));
    setColumns(names);
  };
  const submit = (/** @type {any} */ event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setFilters({ where: String(form.get("where")), body: String(form.get("body")) });
  };
  return html`
    <form class="bar" onSubmit=${submit}>
      <label>State <select value=${state} onChange=${(/** @type {any} */ e) => setFilters({ state: e.currentTarget.value })}>
        <option value="">all</option>${STATES.map((it) => html`<option>${it}</option>`)}
      </select></label>
      <label>SQL filter <input name="where" value=${where} placeholder="color = 'red' AND price > 10" /></label>
      <label>Body contains <input name="body" value=${body} /></label>
      <button>Search</button>
      <label>Columns <input value=${columns.join(", ")} placeholder="price, body.total" onChange=${saveColumns} /></label>
    </form>
    <${ListActions} key=${queryKey} path=${path} criteria=${criteria} kind=${row?.kind} />
    <${List} label="Messages" queryKey=${queryKey} version=${version} columns=${listColumns(columns, route.value.item !== undefined)} fetch=${fetch}
      selected=${(/** @type {any} */ row) => String(row.sequence_number) === route.value.item}
      open=${(/** @type {any} */ row) => navigate({ namespace: namespace.value, entity: route.value.entity, subQueue: route.value.subQueue, tab: "messages", item: String(row.sequence_number), query })}
      empty=${state || where || body ? "No messages match the filters." : "There are no messages."} />
    <footer class="bar"><${Send} path=${path} /><${Export} path=${path} criteria=${criteria} row=${row} /></footer>`;
}

/** @param {string[]} custom names of properties, or `body.` and a path in JSON @param {boolean} narrow whether a message is open beside the list */
function listColumns(custom, narrow) {
  const all = [
    { title: "Sequence number", width: "9.5em", kind: "number", cell: (/** @type {any} */ row) => row.sequence_number },
    { title: "Message ID", width: "minmax(8em, 2fr)", cell: (/** @type {any} */ row) => row.message_id ?? "" },
    { title: "State", width: "minmax(8em, 2fr)", cell: (/** @type {any} */ row) => html`<${State} row=${row} />` },
    { title: "Enqueued time", width: "8em", cell: (/** @type {any} */ row) => time(row.enqueued_at) },
    { title: "Delivery count", width: "7.5em", kind: "number", cell: (/** @type {any} */ row) => row.delivery_count },
    { title: "Session ID", width: "1fr", cell: (/** @type {any} */ row) => row.session_id ?? "" },
    { title: "Subject", width: "1fr", cell: (/** @type {any} */ row) => row.subject ?? "" },
    { title: "Size", width: "6em", kind: "number", cell: (/** @type {any} */ row) => size(row.size) },
    ...custom.map((name, index) => ({ title: name, width: "1fr", cell: (/** @type {any} */ row) => row.own?.[index] ?? "" })),
  ];
  return narrow ? all.slice(0, 4) : all;
}

/** The state of a message and its remaining time. @param {{row: any}} props */
export function State({ row }) {
  const now = useNow();
  if (row.state === "locked") return html`locked by ${row.locked_by ?? "a receiver"}${row.locked_until && now !== null ? ` for ${remaining(row.locked_until, now)}` : ""}`;
  if (row.state === "scheduled") return html`scheduled${now === null ? "" : `, due in ${remaining(row.activates_at, now)}`}`;
  if (row.dead_letter_reason) return html`${row.state}: ${row.dead_letter_reason}`;
  return row.state;
}

/** @param {{found: {data: any, error: Error | null}}} props */
function Settings({ found }) {
  const row = found.data?.row;
  const base = row && { queue: "queues", topic: "topics", subscription: "subscriptions" }[/** @type {"queue"} */ (row.kind)];
  const path = base ? `/${base}/${row.path.split("/").map(encodeURIComponent).join("/")}` : "";
  const answer = useRequest(path);
  const { data } = answer;
  if (!data) return html`<${Placeholder} answer=${row ? answer : found} />`;
  const rows = Object.entries(data.properties ?? {}).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : value === UNLIMITED ? "unlimited" : String(value)]);
  return html`
    <${PropertyList} rows=${rows} />
    ${data.rules && html`<h2>Rules</h2>
      <ul>${data.rules.map((/** @type {{Name: string, Properties: any}} */ { Name, Properties: rule }) => html`<li>${Name}: <code>${rule.SqlFilter?.SqlExpression ?? rule.SqlFilter?.Selector ?? JSON.stringify(rule.CorrelationFilter ?? rule)}</code>${rule.Action && html`, action <code>${rule.Action.SqlExpression ?? JSON.stringify(rule.Action)}</code>`}</li>`)}</ul>`}
    <p class="muted">${count(row.receivers ?? 0, "receiver")}</p>`;
}
