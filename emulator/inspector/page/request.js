// A hook that requests data for a view, repeats the request after changes, and aborts it when the view is removed.

import { useLayoutEffect, useState } from "preact/hooks";
import { namespace, request, version } from "./state.js";

/**
 * Returns the answer of the control API. The last answer stays until the next one arrives, also if a request fails.
 * @param {string} path @param {Record<string, any>} [query]
 * @param {{load?: (path: string, query: any, signal: AbortSignal) => Promise<any>}} [options] `load` replaces the single GET request
 * @returns {{data: any, error: Error | null}}
 */
export function useRequest(path, query = {}, { load = get } = {}) {
  const [answer, setAnswer] = useState(/** @type {{key: string, data: any, error: Error | null}} */ ({ key: "", data: null, error: null }));
  const key = `${namespace.value} ${path} ${JSON.stringify(query)}`;
  // Before other events, so that the first change of another namespace does not repeat the requests for the last one.
  useLayoutEffect(() => {
    if (!path || !namespace.value) return;
    const controller = new AbortController();
    const refresh = coalesce(async () => {
      try {
        const data = await load(path, query, controller.signal);
        if (!controller.signal.aborted) setAnswer({ key, data, error: null });
      } catch (error) {
        if (!controller.signal.aborted) setAnswer((last) => ({ key, data: last.key === key ? last.data : null, error: /** @type {Error} */ (error) }));
      }
    });
    const unsubscribe = version.subscribe((current) => current > 0 && refresh());
    return () => {
      controller.abort();
      unsubscribe();
    };
  }, [key]);
  return answer.key === key ? answer : { data: null, error: null };
}

/** @param {string} path @param {any} query @param {AbortSignal} signal */
function get(path, query, signal) {
  return request("GET", path, { query, signal });
}

/** Returns a function that runs `run`. Calls during a run cause exactly one further run after it. @param {() => Promise<void>} run */
export function coalesce(run) {
  let busy = false;
  let again = false;
  return () => {
    again = true;
    if (busy) return;
    busy = true;
    (async () => {
      while (again) {
        again = false;
        await run();
      }
      busy = false;
    })();
  };
}
