// Small parts that every view is made of.

import { useEffect, useRef, useState } from "preact/hooks";
import { write } from "./address.js";
import { html } from "./html.js";
import { latest, namespace, notice } from "./state.js";

/** A link to a place in the namespace. @param {{to: Partial<import("./address.js").Place>, children?: any, class?: string, label?: string}} props */
export function Go({ to, children, label, ...rest }) {
  return html`<a class=${rest.class ?? ""} aria-label=${label} href=${write({ namespace: namespace.value, ...to })}>${children}</a>`;
}

/** Names and values, those without a value left out. @param {{rows: [string, any][]}} props */
export function Facts({ rows }) {
  const known = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return html`<dl class="facts">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

/** What a view shows before, or in place of, an answer. @param {{answer: {data: any, error: Error | null}}} props */
export function Waiting({ answer }) {
  if (answer.error) return html`<p class="bad" role="alert">${answer.error.message}</p>`;
  return html`<p class="empty">…</p>`;
}

/** The instant that the namespace's clock shows, in milliseconds; it runs between two messages of the emulator. */
export function useNow() {
  const frame = latest.value;
  const heard = useRef({ frame: null, at: 0 });
  if (heard.current.frame !== frame) heard.current = { frame, at: performance.now() };
  const [, tick] = useState(0);
  const frozen = frame?.clock?.frozen ?? true;
  useEffect(() => {
    if (frozen) return;
    const timer = setInterval(() => tick((n) => n + 1), 500);
    return () => clearInterval(timer);
  }, [frozen]);
  if (!frame?.clock) return null;
  return Date.parse(frame.clock.now) + (frozen ? 0 : performance.now() - heard.current.at);
}

/** Asks before something that cannot be taken back. @param {{title: string, question: any, yes: string, act: () => void, close: () => void}} props */
export function Confirm({ title, question, yes, act, close }) {
  return html`
    <${Dialog} title=${title} close=${close}>
      <p>${question}</p>
      <div class="buttons">
        <button onClick=${close}>Cancel</button>
        <button class="primary danger" onClick=${() => { close(); act(); }}>${yes}</button>
      </div>
    <//>`;
}

/** @param {{title: string, close: () => void, children?: any}} props */
export function Dialog({ title, close, children }) {
  const element = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const before = useRef(notice.value);
  const said = notice.value;
  useEffect(() => {
    const opener = /** @type {HTMLElement | null} */ (document.activeElement);
    element.current?.showModal();
    // An element that is removed gives the focus back to nothing, and until it is nothing else can have it.
    return () => queueMicrotask(() => opener?.focus());
  }, []);
  return html`
    <dialog ref=${element} aria-label=${title} onClose=${close} onCancel=${close}>
      <h2>${title}</h2>
      ${children}
      ${said?.bad && said !== before.current && html`<p class="bad" role="alert">${said.text}</p>`}
    </dialog>`;
}

/** Copies a text and says so. @param {{text: () => string, children?: any}} props */
export function Copy({ text, children }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button onClick=${copy}>${done ? "Copied" : children}</button>`;
}

/** Saves a text as a file. @param {string} name @param {string} text @param {string} type */
export function save(name, text, type = "application/json") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
