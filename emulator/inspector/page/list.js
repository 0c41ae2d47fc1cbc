// A list of any length. Only the visible rows are in the document; their pages are requested when scrolling stops.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { coalesce } from "./request.js";
import { html } from "./html.js";

/** The height of a row in pixels, also in the style sheet. */
const ROW_HEIGHT = 28;
/** Rows per request. */
const PAGE = 50;
/** The maximum number of loaded pages. */
const MAX_PAGES = 10;
/** Rows in the document above and below the visible ones. */
const MARGIN = 8;
/** How long the list must not be scrolled before it requests rows, in milliseconds. */
const SCROLL_DELAY = 80;

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => any} cell
 * @property {string} [width] its size as a CSS grid track
 * @property {string} [kind] the CSS class of its cells
 */

/**
 * @param {object} props
 * @param {string} props.label the accessible name
 * @param {string} props.queryKey identifies the content; a new value discards the rows
 * @param {import("@preact/signals").Signal<number>} props.version a new value reloads the visible rows
 * @param {Column[]} props.columns
 * @param {(skip: number, limit: number, signal: AbortSignal) => Promise<{total: number, rows: any[]}>} props.fetch
 * @param {(row: any) => void} props.open
 * @param {(row: any) => boolean} [props.selected]
 * @param {any} props.empty shown if there are no rows
 */
export function List({ label, queryKey, version, columns, fetch, open, selected, empty }) {
  const view = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const [list, failure] = usePages(queryKey, version, Math.floor(top / ROW_HEIGHT), Math.ceil(height / ROW_HEIGHT), fetch);

  useLayoutEffect(() => {
    const element = view.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    setActive(0);
    if (view.current) view.current.scrollTop = 0;
  }, [queryKey]);

  const from = Math.max(0, Math.floor(top / ROW_HEIGHT) - MARGIN);
  const to = Math.min(list.total, Math.ceil((top + height) / ROW_HEIGHT) + MARGIN, from + 100);
  const rowId = (/** @type {number} */ index) => `${label.toLowerCase()}-row-${index}`;
  const template = columns.map((column) => column.width ?? "1fr").join(" ");

  /** @param {number} to */
  const moveTo = (to) => {
    const next = Math.max(0, Math.min(list.total - 1, to));
    setActive(next);
    const element = view.current;
    if (!element) return;
    if (next * ROW_HEIGHT < element.scrollTop) element.scrollTop = next * ROW_HEIGHT;
    if ((next + 2) * ROW_HEIGHT > element.scrollTop + element.clientHeight) element.scrollTop = (next + 2) * ROW_HEIGHT - element.clientHeight;
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const page = Math.floor(height / ROW_HEIGHT) - 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      j: () => moveTo(active + 1),
      ArrowDown: () => moveTo(active + 1),
      k: () => moveTo(active - 1),
      ArrowUp: () => moveTo(active - 1),
      PageDown: () => moveTo(active + page),
      PageUp: () => moveTo(active - page),
      Home: () => moveTo(0),
      End: () => moveTo(list.total - 1),
      Enter: () => list.row(active) && open(list.row(active)),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };

  const rows = [];
  for (let index = from; index < to; index += 1) {
    const row = list.row(index);
    const classes = ["row", index === active && "active", row && selected?.(row) && "selected", !row && "pending"].filter(Boolean).join(" ");
    rows.push(html`
      <div key=${index} id=${rowId(index)} role="row" aria-rowindex=${index + 2} aria-selected=${index === active} class=${classes}
        style=${{ top: `${(index + 1) * ROW_HEIGHT}px`, gridTemplateColumns: template }}
        onClick=${() => { setActive(index); if (row) open(row); }}>
        ${columns.map((column) => html`<span role="gridcell" class=${column.kind ?? ""}>${row ? column.cell(row) : "…"}</span>`)}
      </div>`);
  }
  return html`
    <div ref=${view} class="list" role="grid" aria-label=${label} aria-rowcount=${list.total + 1} tabindex="0"
      aria-activedescendant=${active >= from && active < to ? rowId(active) : undefined}
      onScroll=${(/** @type {any} */ event) => setTop(event.currentTarget.scrollTop)} onKeyDown=${onKeyDown}>
      <div class="row header" role="row" aria-rowindex="1" style=${{ gridTemplateColumns: template }}>
        ${columns.map((column) => html`<span role="columnheader" class=${column.kind ?? ""}>${column.title}</span>`)}
      </div>
      <div class="space" role="presentation" style=${{ height: `${list.total * ROW_HEIGHT}px` }}></div>
      ${rows}
    </div>
    ${failure && html`<p class="bad" role="alert">${failure}</p>`}
    ${!failure && list.known && list.total === 0 && html`<div class="empty">${empty}</div>`}`;
}

/**
 * Loads the pages that contain the visible rows and some rows around them.
 * @param {string} queryKey @param {import("@preact/signals").Signal<number>} version @param {number} row the first visible row
 * @param {number} visible the number of visible rows @param {any} fetch
 */
function usePages(queryKey, version, row, visible, fetch) {
  const loaded = useRef({ queryKey, total: 0, known: false, /** @type {Map<number, any[]>} */ pages: new Map() });
  const [, redraw] = useState(0);
  const [failure, setFailure] = useState(/** @type {string | null} */ (null));
  if (loaded.current.queryKey !== queryKey) loaded.current = { queryKey, total: 0, known: false, pages: new Map() };
  const first = Math.floor(Math.max(0, row - MARGIN) / PAGE);
  const last = Math.max(first, Math.floor((row + visible + MARGIN) / PAGE));

  // Before other events, so that the first change of another namespace does not repeat the requests for the last one.
  useLayoutEffect(() => {
    const current = loaded.current;
    const controller = new AbortController();
    const load = coalesce(async () => {
      for (let number = first; number <= last; number += 1) {
        if (number > 0 && current.known && number * PAGE >= current.total) continue;
        try {
          const { total, rows } = await fetch(number * PAGE, PAGE, controller.signal);
          if (controller.signal.aborted) return;
          Object.assign(current, { total, known: true });
          current.pages.delete(number);
          current.pages.set(number, rows);
          while (current.pages.size > MAX_PAGES) current.pages.delete(/** @type {number} */ (current.pages.keys().next().value));
          setFailure(null);
        } catch (error) {
          if (controller.signal.aborted) return;
          setFailure(/** @type {Error} */ (error).message);
        }
      }
      redraw((n) => n + 1);
    });
    let unsubscribe = () => {};
    const timer = setTimeout(() => {
      unsubscribe = version.subscribe((value) => value > 0 && load());
    }, current.known ? SCROLL_DELAY : 0);
    return () => {
      clearTimeout(timer);
      controller.abort();
      unsubscribe();
    };
  }, [queryKey, first, last]);

  const { total, known, pages } = loaded.current;
  const list = { total, known, row: (/** @type {number} */ index) => pages.get(Math.floor(index / PAGE))?.[index % PAGE] };
  return /** @type {[typeof list, string | null]} */ ([list, failure]);
}
