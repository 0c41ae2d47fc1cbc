// JSON by its tokens. Parsed, numbers would be rounded, names sorted, and those that come twice dropped.

// Indentation of what is deeper would be longer than all else.
const DEEPEST = 100;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** The tokens of a text, or null where it is not JSON. @param {string | null | undefined} text @returns {string[] | null} */
export function tokens(text) {
  if (!text || !/^\s*[[{"\d\-tfn]/.test(text)) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  return text.match(TOKEN);
}

/** What a text says, which must not have a number that would be rounded. @param {string} text @returns {any} */
export function exactly(text) {
  const value = JSON.parse(text);
  const rounded = text.match(TOKEN)?.find((token) => /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token)));
  if (rounded) throw new Error(`${rounded} would be rounded: write it as a text, as in {"long": "${rounded}"}`);
  return value;
}

/** The same JSON with an indentation, or as it was where that does not help. @param {string[]} all its tokens @param {string} text */
export function indented(all, text) {
  /** @type {string[]} */
  const out = [];
  let depth = 0;
  let before = "";
  for (const token of all) {
    const closes = token === "}" || token === "]";
    const opened = before === "{" || before === "[";
    if (closes) depth -= 1;
    if (closes ? !opened : opened || before === ",") out.push("\n", "  ".repeat(depth));
    out.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    if (depth > DEEPEST) return text;
    before = token;
  }
  return out.join("");
}

/** What stands at a path, a string without its quotes; nothing where the path leads nowhere. @param {string[]} all @param {string[]} path */
export function valueAt(all, path) {
  let start = 0;
  for (const key of path) {
    const found = members(all, start).filter(([name]) => name === key).pop();
    if (!found) return "";
    start = found[1];
  }
  const source = all.slice(start, end(all, start)).join("");
  return source.startsWith('"') ? String(JSON.parse(source)) : source;
}

/** Names, or positions, and where their values begin. @param {string[]} all @param {number} start @returns {[string, number][]} */
function members(all, start) {
  /** @type {[string, number][]} */
  const found = [];
  const isObject = all[start] === "{";
  if (!isObject && all[start] !== "[") return found;
  for (let next = start; all[next] !== "}" && all[next] !== "]"; next = end(all, found[found.length - 1][1])) {
    if (all[next + 1] === "}" || all[next + 1] === "]") break;
    found.push(isObject ? [JSON.parse(all[next + 1]), next + 3] : [String(found.length), next + 1]);
  }
  return found;
}

/** Where a value ends. @param {string[]} all @param {number} start */
function end(all, start) {
  let depth = 0;
  let next = start;
  do {
    if (all[next] === "{" || all[next] === "[") depth += 1;
    if (all[next] === "}" || all[next] === "]") depth -= 1;
    next += 1;
  } while (depth > 0);
  return next;
}
