// The list of entities, of which only the visible pages are requested.

import { useMemo, useState } from "preact/hooks";
import { navigate, route } from "./route.js";
import { html } from "./html.js";
import { List } from "./list.js";
import { paged } from "./paging.js";
import { request, counts, namespace, version } from "./state.js";

/** @type {[string, string][]} */
const ORDERS = [["path", "Sort by name"], ["dead-letter", "Sort by DLQ count"]];

export function Tree() {
  const [contains, setContains] = useState("");
  const [order, setOrder] = useState("path");
  const queryKey = `${namespace.value} ${contains} ${order}`;
  const fetch = useMemo(
    () =>
      paged(async (after, limit, signal) => {
        const answer = await request("GET", "/entities", { query: { contains, order, after, limit }, signal });
        return { rows: answer.entities, next: answer.next, total: answer.total };
      }),
    [queryKey],
  );
  const current = route.value;
  const changed = counts.value;
  const number = (/** @type {any} */ row, /** @type {string} */ name) => (/** @type {any} */ (changed[row.path] ?? row.counts ?? {}))[name] || "";
  const columns = [
    { title: "Entity", width: "minmax(0, 1fr)", kind: "path", cell: (/** @type {any} */ row) => html`<${Name} row=${row} grouped=${order === "path"} />` },
    { title: "Active", width: "3.3em", kind: "number", cell: (/** @type {any} */ row) => number(row, "active") },
    { title: "DLQ", width: "3em", kind: "number dead-letter", cell: (/** @type {any} */ row) => number(row, "dead_letter") },
  ];
  return html`
    <nav class="tree" aria-label="Entities">
      <div class="bar">
        <input id="filter" type="search" placeholder="Filter ( / )" aria-label="Filter entities by name" value=${contains}
          onInput=${(/** @type {any} */ e) => setContains(e.currentTarget.value)} />
        <select aria-label="Sort order" value=${order} onChange=${(/** @type {any} */ e) => setOrder(e.currentTarget.value)}>
          ${ORDERS.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
        </select>
      </div>
      <${List} label="Entities" queryKey=${queryKey} version=${version} columns=${columns} fetch=${fetch}
        selected=${(/** @type {any} */ row) => row.path === current.entity}
        open=${(/** @type {any} */ row) => navigate({ namespace: namespace.value, entity: row.path })}
        empty=${contains ? "No entities match the filter." : "The namespace has no entities."} />
    </nav>`;
}

/** @param {{row: any, grouped: boolean}} props */
function Name({ row, grouped }) {
  const inTopic = row.kind === "subscription" && grouped;
  const name = inTopic ? row.path.split(/\/Subscriptions\//i).pop() : row.path;
  const flags = [row.status && row.status !== "Active" && row.status, row.forward_to && `→ ${row.forward_to}`].filter(Boolean);
  return html`<span class=${inTopic ? "kind inner" : "kind"} title=${row.kind}>${ICONS[row.kind] ?? "·"}</span><span title=${row.path}>${name}</span>
    ${flags.length > 0 && html`<span class="muted"> ${flags.join(" ")}</span>`}`;
}

/** @type {Record<string, string>} */
const ICONS = { queue: "▤", topic: "◇", subscription: "▹" };
