// Components that several views use.

import { useEffect, useRef, useState } from "preact/hooks";
import { formatRoute } from "./route.js";
import { html } from "./html.js";
import { lastChange, namespace, notice, showErrors } from "./state.js";

/** The maximum number of rows in a table. */
export const MAX_ROWS = 1000;

/** A link to a route in the namespace. @param {{to: Partial<import("./route.js").Route>, children?: any, class?: string, label?: string}} props */
export function Link({ to, children, label, ...rest }) {
  return html`<a class=${rest.class ?? ""} aria-label=${label} href=${formatRoute({ namespace: namespace.value, ...to })}>${children}</a>`;
}

/** Names and values, without those that are empty. @param {{rows: [string, any][]}} props */
export function PropertyList({ rows }) {
  const known = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="properties">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** What a view shows until it has data: the error, if any. @param {{answer: {data: any, error: Error | null}}} props */
export function Placeholder({ answer }) {
  if (answer.error) return html`<p class="bad" role="alert">${answer.error.message}</p>`;
  return html`<p class="empty">Loading…</p>`;
}

/** The time of the namespace's clock in milliseconds, extrapolated since the last change. */
export function useNow() {
  const change = lastChange.value;
  const received = useRef({ change: null, at: 0 });
  if (received.current.change !== change) received.current = { change, at: performance.now() };
  const [, tick] = useState(0);
  const frozen = change?.clock?.frozen ?? true;
  useEffect(() => {
    if (frozen) return;
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => clearInterval(timer);
  }, [frozen]);
  if (!change?.clock) return null;
  return Date.parse(change.clock.now) + (frozen ? 0 : performance.now() - received.current.at);
}

/** Asks the user to confirm an action. @param {{title: string, question: any, action: string, onConfirm: () => void, close: () => void}} props */
export function Confirm({ title, question, action, onConfirm, close }) {
  return html`
    <${Dialog} title=${title} close=${close}>
      <p>${question}</p>
      <div class="buttons">
        <button onClick=${close}>Cancel</button>
        <button class="primary danger" onClick=${() => { close(); onConfirm(); }}>${action}</button>
      </div>
    <//>`;
}

/** @param {{title: string, close: () => void, children?: any}} props */
export function Dialog({ title, close, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const before = useRef(notice.value);
  const current = notice.value;
  useEffect(() => {
    const opener = /** @type {HTMLElement | null} */ (document.activeElement);
    element.current?.showModal();
    // Removing the focused element moves the focus to the body, and the dialog is modal until it is removed.
    return () => queueMicrotask(() => opener?.focus());
  }, []);
  return html`
    <dialog ref=${element} aria-label=${title} onClose=${close} onCancel=${close}>
      <h2>${title}</h2>
      ${children}
      ${current?.bad && current !== before.current && html`<p class="bad" role="alert">${current.text}</p>`}
    </dialog>`;
}

/** A button that copies a text to the clipboard. @param {{text: () => string, children?: any}} props */
export function Copy({ text, children }) {
  const [done, setDone] = useState(false);
  const copy = () => showErrors(async () => {
    await writeClipboard(text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  });
  return html`<button onClick=${copy}>${done ? "Copied" : children}</button>`;
}

/** Copies a text, also where the browser has no clipboard API: at the name of another host without TLS. @param {string} text */
async function writeClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const focused = /** @type {HTMLElement | null} */ (document.activeElement);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!copied) throw new Error("The browser did not copy the text.");
}

/** Saves a text as a file. @param {string} name @param {string} text @param {string} type */
export function save(name, text, type = "application/json") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
