// A hook that asks for what a view shows, again when it changes, and never for what is no longer shown.

import { useEffect, useState } from "preact/hooks";
import { ask, namespace, version } from "./state.js";

/**
 * What the control API answers; the last answer stays while the next is on its way, or when there is none.
 * @param {string} path @param {Record<string, any>} [query]
 * @param {{live?: boolean, how?: (path: string, query: any, signal: AbortSignal) => Promise<any>}} [options] `how` asks, where that is not one request
 * @returns {{data: any, error: Error | null}}
 */
export function useAnswer(path, query = {}, { live = true, how = once } = {}) {
  const [answer, setAnswer] = useState(/** @type {{key: string, data: any, error: Error | null}} */ ({ key: "", data: null, error: null }));
  const key = `${namespace.value} ${path} ${JSON.stringify(query)}`;
  useEffect(() => {
    if (!path || !namespace.value) return;
    const stop = new AbortController();
    const look = oneAtATime(async () => {
      try {
        const data = await how(path, query, stop.signal);
        if (!stop.signal.aborted) setAnswer({ key, data, error: null });
      } catch (error) {
        if (!stop.signal.aborted) setAnswer((last) => ({ key, data: last.key === key ? last.data : null, error: /** @type {Error} */ (error) }));
      }
    });
    let end = () => {};
    if (live) end = version.subscribe((now) => now > 0 && look());
    else look();
    return () => {
      stop.abort();
      end();
    };
  }, [key]);
  return answer.key === key ? answer : { data: null, error: null };
}

/** @param {string} path @param {any} query @param {AbortSignal} signal */
function once(path, query, signal) {
  return ask("GET", path, { query, signal });
}

/** What is asked for again while it is under way is done once more afterwards. @param {() => Promise<void>} what */
export function oneAtATime(what) {
  let busy = false;
  let again = false;
  return () => {
    again = true;
    if (busy) return;
    busy = true;
    (async () => {
      while (again) {
        again = false;
        await what();
      }
      busy = false;
    })();
  };
}
