// A list of any length: rows exist only where they are seen, and are asked for by pages when scrolling rests.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { oneAtATime } from "./ask.js";
import { html } from "./html.js";

const ROW = 28;
const PAGE = 50;
const PAGES = 10;
const BEYOND = 8;
const REST = 80;

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => any} cell
 * @property {string} [width] as CSS has it in a grid
 * @property {string} [kind] a class of its cells
 */

/**
 * @param {object} props
 * @param {string} props.label what the rows are, for those who do not see the list
 * @param {string} props.of what they are asked for by: another value is another list
 * @param {import("@preact/signals").Signal<number>} props.version another value means the same list may have changed
 * @param {Column[]} props.columns
 * @param {(skip: number, limit: number, signal: AbortSignal) => Promise<{total: number, rows: any[]}>} props.fetch
 * @param {(row: any) => void} props.open
 * @param {(row: any) => boolean} [props.chosen]
 * @param {any} props.empty what stands there when there is nothing
 */
export function List({ label, of, version, columns, fetch, open, chosen, empty }) {
  const view = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [at, setAt] = useState(0);
  const [list, failure] = usePages(of, version, Math.floor(top / ROW), Math.ceil(height / ROW), fetch);

  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    setAt(0);
    if (view.current) view.current.scrollTop = 0;
  }, [of]);

  const from = Math.max(0, Math.floor(top / ROW) - BEYOND);
  const to = Math.min(list.total, Math.ceil((top + height) / ROW) + BEYOND, from + 100);
  const rowId = (/** @type {number} */ index) => `${label.toLowerCase()}-row-${index}`;
  const template = columns.map((column) => column.width ?? "1fr").join(" ");

  /** @param {number} to */
  const move = (to) => {
    const next = Math.max(0, Math.min(list.total - 1, to));
    setAt(next);
    const element = view.current;
    if (!element) return;
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    if ((next + 2) * ROW > element.scrollTop + element.clientHeight) element.scrollTop = (next + 2) * ROW - element.clientHeight;
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const page = Math.floor(height / ROW) - 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      j: () => move(at + 1),
      ArrowDown: () => move(at + 1),
      k: () => move(at - 1),
      ArrowUp: () => move(at - 1),
      PageDown: () => move(at + page),
      PageUp: () => move(at - page),
      Home: () => move(0),
      End: () => move(list.total - 1),
      Enter: () => list.row(at) && open(list.row(at)),
    };
    const known = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!known) return;
    event.preventDefault();
    known();
  };

  const rows = [];
  for (let index = from; index < to; index += 1) {
    const row = list.row(index);
    const classes = ["row", index === at && "at", row && chosen?.(row) && "chosen", !row && "pending"].filter(Boolean).join(" ");
    rows.push(html`
      <div key=${index} id=${rowId(index)} role="row" aria-rowindex=${index + 2} aria-selected=${index === at} class=${classes}
        style=${{ top: `${(index + 1) * ROW}px`, gridTemplateColumns: template }}
        onClick=${() => { setAt(index); if (row) open(row); }}>
        ${columns.map((column) => html`<span role="gridcell" class=${column.kind ?? ""}>${row ? column.cell(row) : "…"}</span>`)}
      </div>`);
  }
  return html`
    <div ref=${view} class="list" role="grid" aria-label=${label} aria-rowcount=${list.total + 1} tabindex="0"
      aria-activedescendant=${at >= from && at < to ? rowId(at) : undefined}
      onScroll=${(/** @type {any} */ event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${press}>
      <div class="row heads" role="row" aria-rowindex="1" style=${{ gridTemplateColumns: template }}>
        ${columns.map((column) => html`<span role="columnheader" class=${column.kind ?? ""}>${column.title}</span>`)}
      </div>
      <div class="space" role="presentation" style=${{ height: `${list.total * ROW}px` }}></div>
      ${rows}
    </div>
    ${failure && html`<p class="bad" role="alert">${failure}</p>`}
    ${!failure && list.known && list.total === 0 && html`<div class="empty">${empty}</div>`}`;
}

/**
 * The pages of the rows that are seen, and a little beyond.
 * @param {string} of @param {import("@preact/signals").Signal<number>} version @param {number} row the first that is seen
 * @param {number} seen how many are @param {any} fetch
 */
function usePages(of, version, row, seen, fetch) {
  const kept = useRef({ of, total: 0, known: false, /** @type {Map<number, any[]>} */ pages: new Map() });
  const [, redraw] = useState(0);
  const [failure, setFailure] = useState(/** @type {string | null} */ (null));
  if (kept.current.of !== of) kept.current = { of, total: 0, known: false, pages: new Map() };
  const page = Math.floor(Math.max(0, row - BEYOND) / PAGE);
  const last = Math.max(page, Math.floor((row + seen + BEYOND) / PAGE));

  useEffect(() => {
    const now = kept.current;
    const stop = new AbortController();
    const look = oneAtATime(async () => {
      for (let it = page; it <= last; it += 1) {
        if (it > 0 && now.known && it * PAGE >= now.total) continue;
        try {
          const { total, rows } = await fetch(it * PAGE, PAGE, stop.signal);
          if (stop.signal.aborted) return;
          Object.assign(now, { total, known: true });
          now.pages.delete(it);
          now.pages.set(it, rows);
          while (now.pages.size > PAGES) now.pages.delete(/** @type {number} */ (now.pages.keys().next().value));
          setFailure(null);
        } catch (error) {
          if (stop.signal.aborted) return;
          setFailure(/** @type {Error} */ (error).message);
        }
      }
      redraw((n) => n + 1);
    });
    let end = () => {};
    const timer = setTimeout(() => {
      end = version.subscribe((now) => now > 0 && look());
    }, now.known ? REST : 0);
    return () => {
      clearTimeout(timer);
      stop.abort();
      end();
    };
  }, [of, page, last]);

  const { total, known, pages } = kept.current;
  const list = { total, known, row: (/** @type {number} */ at) => pages.get(Math.floor(at / PAGE))?.[at % PAGE] };
  return /** @type {[typeof list, string | null]} */ ([list, failure]);
}
