// Pages by position of what the control API hands out from one row to the next.

/**
 * @template Row
 * @param {(after: any, limit: number, signal: AbortSignal) => Promise<{rows: Row[], next: any, total?: number}>} ask
 * @param {number} most how many rows are looked for
 */
export function paged(ask, most = Infinity) {
  /** @type {Row[]} */
  let rows = [];
  /** Where each request began, by the number of rows before it. @type {Map<number, any>} */
  const starts = new Map([[0, undefined]]);
  let next = /** @type {any} */ (undefined);
  let begun = false;
  let total = /** @type {number | undefined} */ (undefined);

  return async (/** @type {number} */ skip, /** @type {number} */ limit, /** @type {AbortSignal} */ signal) => {
    const begin = [...starts.keys()].filter((it) => it <= skip).pop() ?? 0;
    // What is known already may have changed: the rows from there on are asked for again.
    if (begun && begin < rows.length) {
      rows = rows.slice(0, begin);
      next = starts.get(begin);
      begun = begin > 0;
      for (const start of starts.keys()) if (start > begin) starts.delete(start);
    }
    while (!begun || (rows.length < skip + limit && next !== undefined && rows.length < most)) {
      const before = rows.length;
      const answer = await ask(next, limit, signal);
      rows = [...rows, ...answer.rows];
      begun = true;
      total = answer.total;
      next = answer.next ?? undefined;
      if (rows.length > before && next !== undefined) starts.set(rows.length, next);
    }
    return { total: total ?? rows.length + (next === undefined ? 0 : 1), rows: rows.slice(skip, skip + limit), more: next !== undefined };
  };
}
