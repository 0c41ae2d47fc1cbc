// Access by row index to lists of the control API that only have continuation values.

/**
 * @template Row
 * @param {(after: any, limit: number, signal: AbortSignal) => Promise<{rows: Row[], next: any, total?: number}>} fetchPage
 */
export function paged(fetchPage) {
  /** @type {Row[]} */
  let rows = [];
  /** The continuation value of each request, by the number of rows before it. @type {Map<number, any>} */
  const starts = new Map([[0, undefined]]);
  let next = /** @type {any} */ (undefined);
  let begun = false;
  let total = /** @type {number | undefined} */ (undefined);

  return async (/** @type {number} */ skip, /** @type {number} */ limit, /** @type {AbortSignal} */ signal) => {
    const begin = [...starts.keys()].filter((it) => it <= skip).pop() ?? 0;
    // Known rows may have changed, so the rows from this page on are requested again.
    if (begun && begin < rows.length) {
      rows = rows.slice(0, begin);
      next = starts.get(begin);
      begun = begin > 0;
      for (const start of starts.keys()) if (start > begin) starts.delete(start);
    }
    while (!begun || (rows.length < skip + limit && next !== undefined)) {
      const before = rows.length;
      const answer = await fetchPage(next, limit, signal);
      rows = [...rows, ...answer.rows];
      begun = true;
      total = answer.total;
      next = answer.next ?? undefined;
      if (rows.length > before && next !== undefined) starts.set(rows.length, next);
    }
    return { total: next === undefined ? rows.length : (total ?? rows.length + 1), rows: rows.slice(skip, skip + limit) };
  };
}
